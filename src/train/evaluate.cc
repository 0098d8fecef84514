#include "train/evaluate.h"

#include <algorithm>

namespace convoy {
namespace {

// `model` has just evaluated `batch`, which is mirrored here.
int correct_with_mirrored(Model& model, Batch& batch) {
  std::vector<float> sum(model.logits().begin(), model.logits().end());
  const std::size_t width = std::size_t(model.network().input_shape().width);
  for (std::size_t row = 0; row < batch.images.size(); row += width)
    std::reverse(batch.images.begin() + std::ptrdiff_t(row),
                 batch.images.begin() + std::ptrdiff_t(row + width));
  model.evaluate(batch);
  std::transform(sum.begin(), sum.end(), model.logits().begin(), sum.begin(), std::plus<>{});
  const int classes = model.network().classes();
  int correct = 0;
  for (int n = 0; n < batch.size(); ++n) {
    const auto first = sum.begin() + std::ptrdiff_t(n) * classes;
    correct += std::max_element(first, first + classes) - first == batch.labels[std::size_t(n)];
  }
  return correct;
}

}  // namespace

LoaderOptions evaluation_loader(int batch, int threads) {
  return {.batch = batch, .shuffle = false, .augment = {}, .threads = threads};
}

Tally tally(Model& model, Loader& loader, const EvaluateOptions& options) {
  Tally sums;
  loader.start_epoch(0);
  while (auto batch = loader.next()) {
    if (batch->size() == 0) continue;
    const Outcome outcome = model.evaluate(*batch);
    sums.loss_sum += outcome.loss_sum;
    sums.correct += outcome.correct;
    sums.samples += outcome.samples;
    if (options.flip) sums.flip_correct += correct_with_mirrored(model, *batch);
    if (options.stop && options.stop()) break;
  }
  return sums;
}

Score score_of(const Tally& tally, bool flip) {
  const double samples = double(std::max<std::int64_t>(tally.samples, 1));
  Score score{.loss = tally.loss_sum / samples,
              .accuracy = double(tally.correct) / samples,
              .samples = tally.samples};
  if (flip) score.flip_accuracy = double(tally.flip_correct) / samples;
  return score;
}

Score evaluate(Model& model, Loader& loader, const EvaluateOptions& options) {
  return score_of(tally(model, loader, options), options.flip);
}

}  // namespace convoy
