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

Score evaluate(Model& model, Loader& loader, const EvaluateOptions& options) {
  double loss_sum = 0;
  std::int64_t correct = 0, flip_correct = 0;
  Score score;
  loader.start_epoch(0);
  while (auto batch = loader.next()) {
    const Outcome outcome = model.evaluate(*batch);
    loss_sum += outcome.loss_sum;
    correct += outcome.correct;
    score.samples += outcome.samples;
    if (options.flip) flip_correct += correct_with_mirrored(model, *batch);
    if (options.stop && options.stop()) break;
  }
  const double samples = double(std::max<std::int64_t>(score.samples, 1));
  score.loss = loss_sum / samples;
  score.accuracy = double(correct) / samples;
  if (options.flip) score.flip_accuracy = double(flip_correct) / samples;
  return score;
}

}  // namespace convoy
