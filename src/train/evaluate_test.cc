#include "train/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "data/synthetic.h"
#include "nn/zoo.h"

namespace convoy {
namespace {

int best(const std::vector<double>& logits) {
  return int(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Against one image at a time, mirrored pixel by pixel.
TEST(Evaluate, FlipAccuracyIsOfTheMeanOfBothSides) {
  const Shape shape{3, 14, 18};
  const auto data = make_synthetic({.shape = shape, .train_count = 60}, SyntheticPart::train, 5);
  Model model(make_network("airbench", shape, 10), {.batch = 16, .threads = 1});
  Loader loader(*data, evaluation_loader(16, 1));
  const Score score = evaluate(model, loader, {.flip = true});
  EXPECT_EQ(score.samples, 60);

  Loader single(*data, evaluation_loader(1, 1));
  single.start_epoch(0);
  int plain_correct = 0, flip_correct = 0, differ = 0;
  while (auto batch = single.next()) {
    model.evaluate(*batch);
    const std::vector<double> plain(model.logits().begin(), model.logits().end());
    Batch mirrored = *batch;
    for (int row = 0; row < 3 * 14; ++row)
      for (int x = 0; x < 18; ++x)
        mirrored.images[std::size_t(row * 18 + x)] = batch->images[std::size_t(row * 18 + 17 - x)];
    model.evaluate(mirrored);
    std::vector<double> sum = plain;
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += model.logits()[c];
    plain_correct += best(plain) == batch->labels[0];
    flip_correct += best(sum) == batch->labels[0];
    differ += best(sum) != best(plain);
  }
  EXPECT_GT(differ, 0) << "mirroring changes nothing: this test shows nothing";
  EXPECT_DOUBLE_EQ(score.accuracy, plain_correct / 60.0);
  EXPECT_DOUBLE_EQ(score.flip_accuracy.value_or(-1), flip_correct / 60.0);
}

TEST(Evaluate, FlipsOnlyWhereAskedTo) {
  const Shape shape{1, 12, 12};
  const auto data = make_synthetic({.shape = shape, .train_count = 8}, SyntheticPart::train, 5);
  Model model(make_network("airbench", shape, 10), {.batch = 8, .threads = 1});
  Loader loader(*data, evaluation_loader(8, 1));
  EXPECT_FALSE(evaluate(model, loader).flip_accuracy.has_value());
}

}  // namespace
}  // namespace convoy
