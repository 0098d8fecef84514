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

// Against one image at a time, moved pixel by pixel.
TEST(Evaluate, ShiftAccuracyIsOfTheMeanOfSixViews) {
  constexpr int kHeight = 14, kWidth = 18;
  const Shape shape{3, kHeight, kWidth};
  const auto data = make_synthetic({.shape = shape, .train_count = 60}, SyntheticPart::train, 5);
  Model model(make_network("airbench", shape, 10), {.batch = 16, .threads = 1});
  Loader loader(*data, evaluation_loader(16, 1));
  const Score score = evaluate(model, loader, {.flip = true, .shift = true});

  const auto beyond = [](int at, int size) { return at < 0 ? 1 : at == size ? size - 2 : at; };
  Loader single(*data, evaluation_loader(1, 1));
  single.start_epoch(0);
  int correct = 0, flip_correct = 0, differ = 0;
  while (auto batch = single.next()) {
    std::vector<double> flips, all(10, 0.0);
    for (const int by : {0, 1, -1}) {
      for (const bool mirrored : {false, true}) {
        Batch view = *batch;
        for (int c = 0; c < 3; ++c)
          for (int y = 0; y < kHeight; ++y)
            for (int x = 0; x < kWidth; ++x) {
              const int column = mirrored ? kWidth - 1 - x : x;
              view.images[std::size_t((c * kHeight + y) * kWidth + x)] = batch->images[std::size_t(
                  (c * kHeight + beyond(y + by, kHeight)) * kWidth + beyond(column + by, kWidth))];
            }
        model.evaluate(view);
        for (std::size_t k = 0; k < 10; ++k) all[k] += model.logits()[k] * (by == 0 ? 2 : 1);
      }
      if (by == 0) flips = all;
    }
    correct += best(all) == batch->labels[0];
    flip_correct += best(flips) == batch->labels[0];
    differ += best(all) != best(flips);
  }
  EXPECT_GT(differ, 0) << "shifting changes nothing: this test shows nothing";
  EXPECT_DOUBLE_EQ(score.flip_accuracy.value_or(-1), flip_correct / 60.0);
  EXPECT_DOUBLE_EQ(score.shift_accuracy.value_or(-1), correct / 60.0);
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
