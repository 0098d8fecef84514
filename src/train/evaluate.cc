#include "train/evaluate.h"

#include <algorithm>

namespace convoy {
namespace {

// Adds the model's logits times `weight` to `sums`.
void add_logits(const Model& model, float weight, std::vector<float>& sums) {
  std::transform(sums.begin(), sums.end(), model.logits().begin(), sums.begin(),
                 [weight](float sum, float logit) { return sum + weight * logit; });
}

void mirror(Batch& batch, const Shape& shape) {
  const auto width = std::ptrdiff_t(shape.width);
  for (auto row = batch.images.begin(); row != batch.images.end(); row += width)
    std::reverse(row, row + width);
}

// Every image moved down and right by `by` (1 or -1); what comes in is the mirror image of what is
// beyond the edge.
Batch shifted(const Batch& batch, const Shape& shape, int by) {
  const auto from = [by](int at, int size) {
    const int before = at - by;
    return before < 0 ? std::min(1, size - 1) : before < size ? before : std::max(size - 2, 0);
  };
  Batch moved = batch;
  const std::size_t width = std::size_t(shape.width);
  for (std::size_t plane = 0; plane < batch.images.size(); plane += shape.area())
    for (int y = 0; y < shape.height; ++y)
      for (int x = 0; x < shape.width; ++x)
        moved.images[plane + std::size_t(y) * width + std::size_t(x)] =
            batch.images[plane + std::size_t(from(y, shape.height)) * width +
                         std::size_t(from(x, shape.width))];
  return moved;
}

int count_correct(const std::vector<float>& logits, const Batch& batch, int classes) {
  int correct = 0;
  for (int n = 0; n < batch.size(); ++n) {
    const auto first = logits.begin() + std::ptrdiff_t(n) * classes;
    correct += std::max_element(first, first + classes) - first == batch.labels[std::size_t(n)];
  }
  return correct;
}

// `model` has just evaluated `batch`.
void tally_views(Model& model, const Batch& batch, const EvaluateOptions& options, Tally& tally) {
  const Shape shape = model.network().input_shape();
  const int classes = model.network().classes();
  std::vector<float> sums(model.logits().begin(), model.logits().end());
  const auto add_mirrored = [&](Batch view, float weight) {
    mirror(view, shape);
    model.evaluate(view);
    add_logits(model, weight, sums);
  };
  add_mirrored(batch, 1);
  tally.flip_correct += count_correct(sums, batch, classes);
  if (!options.shift) return;
  for (const int by : {-1, 1}) {  // both together count as much as the image where it was
    Batch view = shifted(batch, shape, by);
    model.evaluate(view);
    add_logits(model, 0.5f, sums);
    add_mirrored(std::move(view), 0.5f);
  }
  tally.shift_correct += count_correct(sums, batch, classes);
}

}  // namespace

LoaderOptions evaluation_loader(int batch, int threads) {
  return {.batch = batch, .shuffle = false, .augment = {}, .threads = threads};
}

void tally_batch(Model& model, const Batch& batch, const EvaluateOptions& options, Tally& sums) {
  const Outcome outcome = model.evaluate(batch);
  sums.loss_sum += outcome.loss_sum;
  sums.correct += outcome.correct;
  sums.samples += outcome.samples;
  if (options.flip) tally_views(model, batch, options, sums);
}

Tally tally(Model& model, Loader& loader, const EvaluateOptions& options) {
  Tally sums;
  loader.start_epoch(0);
  while (auto batch = loader.next()) {
    if (batch->size() == 0) continue;
    tally_batch(model, *batch, options, sums);
    if (options.stop && options.stop()) break;
  }
  return sums;
}

Score score_of(const Tally& tally, const EvaluateOptions& options) {
  const double samples = double(std::max<std::int64_t>(tally.samples, 1));
  Score score{.loss = tally.loss_sum / samples,
              .accuracy = double(tally.correct) / samples,
              .samples = tally.samples};
  if (options.flip) score.flip_accuracy = double(tally.flip_correct) / samples;
  if (options.flip && options.shift) score.shift_accuracy = double(tally.shift_correct) / samples;
  return score;
}

Score evaluate(Model& model, Loader& loader, const EvaluateOptions& options) {
  return score_of(tally(model, loader, options), options);
}

}  // namespace convoy
