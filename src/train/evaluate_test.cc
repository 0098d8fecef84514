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

// Every image shifted up and left by `by` pixels, then mirrored or not; what comes in is the mirror
// image of what is inside the edge.
Batch view_of(const Batch& batch, int height, int width, int by, bool mirrored) {
  const auto inside = [](int at, int size) { return at < 0 ? 1 : at == size ? size - 2 : at; };
  Batch view = batch;
  for (std::size_t plane = 0; plane < batch.images.size(); plane += std::size_t(height * width))
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const int row = inside(y + by, height);
        const int column = inside((mirrored ? width - 1 - x : x) + by, width);
        view.images[plane + std::size_t(y * width + x)] =
            batch.images[plane + std::size_t(row * width + column)];
      }
  return view;
}

TEST(Evaluate, ShiftAccuracyIsOfTheMeanOfSixViews) {
  constexpr int kHeight = 12, kWidth = 14, kCount = 480, kBatch = 96;
  const Shape shape{3, kHeight, kWidth};
  const auto data =
      make_synthetic({.shape = shape, .train_count = kCount}, SyntheticPart::train, 5);
  Model model(make_network("airbench", shape, 10), {.batch = kBatch, .threads = 1});
  Loader loader(*data, evaluation_loader(kBatch, 1));
  const Score score = evaluate(model, loader, {.flip = true, .shift = true});

  loader.start_epoch(0);
  int correct = 0, flip_correct = 0, differ = 0;
  while (auto batch = loader.next()) {
    std::vector<double> flips, all(std::size_t(kBatch * 10), 0.0);
    for (const int by : {0, 1, -1}) {
      for (const bool mirrored : {false, true}) {
        model.evaluate(view_of(*batch, kHeight, kWidth, by, mirrored));
        for (std::size_t i = 0; i < all.size(); ++i)
          all[i] += model.logits()[i] * (by == 0 ? 2 : 1);
      }
      if (by == 0) flips = all;
    }
    for (int n = 0; n < kBatch; ++n) {
      const auto best_of = [n](const std::vector<double>& logits) {
        return best({logits.begin() + n * 10, logits.begin() + n * 10 + 10});
      };
      correct += best_of(all) == batch->labels[std::size_t(n)];
      flip_correct += best_of(flips) == batch->labels[std::size_t(n)];
      differ += best_of(all) != best_of(flips);
    }
  }
  EXPECT_GT(differ, 0) << "shifting changes nothing: this test shows nothing";
  EXPECT_DOUBLE_EQ(score.flip_accuracy.value_or(-1), double(flip_correct) / kCount);
  EXPECT_DOUBLE_EQ(score.shift_accuracy.value_or(-1), double(correct) / kCount);
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
