#include "train/evaluate.h"

#include <algorithm>

namespace convoy {

LoaderOptions evaluation_loader(int batch, int threads) {
  return {.batch = batch, .shuffle = false, .augment = {}, .threads = threads};
}

Score evaluate(Model& model, Loader& loader, const std::function<bool()>& stop) {
  double loss_sum = 0;
  std::int64_t correct = 0;
  Score score;
  loader.start_epoch(0);
  while (auto batch = loader.next()) {
    const Outcome outcome = model.evaluate(*batch);
    loss_sum += outcome.loss_sum;
    correct += outcome.correct;
    score.samples += outcome.samples;
    if (stop && stop()) break;
  }
  const double samples = double(std::max<std::int64_t>(score.samples, 1));
  score.loss = loss_sum / samples;
  score.accuracy = double(correct) / samples;
  return score;
}

}  // namespace convoy
