#include "data/augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "data/memory_dataset.h"

namespace convoy {
namespace {

// One image of 2x3x4 whose bytes are 1 to 24, so that each value tells where it came from.
MemoryDataset numbered() {
  MemoryImages images{.shape = {2, 3, 4},
                      .classes = 1,
                      .bytes = {},
                      .labels = {0},
                      .mean = {0.0f, 0.5f},
                      .deviation = {1.0f, 0.25f}};
  for (int i = 1; i <= 24; ++i) images.bytes.push_back(std::uint8_t(i));
  return MemoryDataset(std::move(images));
}

std::vector<float> applied(const Augment& augment, const Dataset& set, std::uint32_t epoch,
                           std::uint64_t sample) {
  std::vector<std::uint8_t> image(set.shape().count());
  set.read(0, image);
  std::vector<float> out(image.size(), -99.0f);
  augment.apply(image, epoch, sample, out);
  return out;
}

TEST(Augment, Normalises) {
  const MemoryDataset set = numbered();
  const std::vector<float> out = applied(Augment(set, {}, 1), set, 0, 0);
  for (int i = 0; i < 12; ++i) EXPECT_NEAR(out[std::size_t(i)], (i + 1) / 255.0f, 1e-6);
  for (int i = 12; i < 24; ++i)
    EXPECT_NEAR(out[std::size_t(i)], ((i + 1) / 255.0f - 0.5f) / 0.25f, 1e-5);
}

// What the crop shows, as bytes of the first channel; 0 is padding.
std::vector<int> bytes_of(const std::vector<float>& out) {
  std::vector<int> bytes;
  for (int i = 0; i < 12; ++i) bytes.push_back(int(std::lround(out[std::size_t(i)] * 255.0f)));
  return bytes;
}

std::vector<int> expected(int down, int right, bool mirrored) {
  std::vector<int> bytes;
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 4; ++x) {
      const int from_y = y + down, from_x = (mirrored ? 3 - x : x) + right;
      const bool inside = from_y >= 0 && from_y < 3 && from_x >= 0 && from_x < 4;
      bytes.push_back(inside ? 1 + from_y * 4 + from_x : 0);
    }
  return bytes;
}

TEST(Augment, EveryResultIsACropAndEveryCropAppears) {
  const MemoryDataset set = numbered();
  for (const bool flip : {false, true}) {
    std::set<std::vector<int>> possible, seen;
    for (int down = -1; down <= 1; ++down)
      for (int right = -1; right <= 1; ++right) {
        possible.insert(expected(down, right, false));
        if (flip) possible.insert(expected(down, right, true));
      }
    const Augment augment(set, {.crop_padding = 1, .flip = flip}, 1);
    for (std::uint64_t sample = 0; sample < 500; ++sample)
      seen.insert(bytes_of(applied(augment, set, 0, sample)));
    EXPECT_EQ(seen, possible);
  }
}

TEST(Augment, ReflectionShowsTheImagesOwnPixels) {
  const MemoryDataset set = numbered();
  const auto reflected = [](int at, int size) {
    return at < 0 ? -at : at < size ? at : 2 * size - 2 - at;
  };
  std::set<std::vector<int>> possible, seen;
  for (int down = -2; down <= 2; ++down)
    for (int right = -2; right <= 2; ++right)
      for (const bool mirrored : {false, true}) {
        std::vector<int> bytes;
        for (int y = 0; y < 3; ++y)
          for (int x = 0; x < 4; ++x)
            bytes.push_back(1 + reflected(y + down, 3) * 4 +
                            reflected((mirrored ? 3 - x : x) + right, 4));
        possible.insert(bytes);
      }
  const Augment augment(set, {.crop_padding = 2, .reflect = true, .flip = true}, 1);
  for (std::uint64_t sample = 0; sample < 1000; ++sample)
    seen.insert(bytes_of(applied(augment, set, 0, sample)));
  EXPECT_EQ(seen, possible);
  EXPECT_THROW(Augment(set, {.crop_padding = 3, .reflect = true}, 1), ConfigError);
}

TEST(Augment, AlternatingFlipsShowBothSidesInAnyTwoEpochs) {
  const MemoryDataset set = numbered();
  const Augment augment(set, {.flip = true, .alternate = true}, 1);
  int mirrored_first = 0;
  for (std::uint64_t sample = 0; sample < 100; ++sample) {
    const auto first = applied(augment, set, 0, sample), second = applied(augment, set, 1, sample);
    EXPECT_NE(first, second);
    EXPECT_EQ(first, applied(augment, set, 2, sample));
    EXPECT_EQ(second, applied(augment, set, 7, sample));
    mirrored_first += bytes_of(first) == expected(0, 0, true);
  }
  EXPECT_GT(mirrored_first, 25);
  EXPECT_LT(mirrored_first, 75);
}

TEST(Augment, ChannelsMoveTogether) {
  const MemoryDataset set = numbered();
  const Augment augment(set, {.crop_padding = 2, .flip = true}, 5);
  for (std::uint64_t sample = 0; sample < 50; ++sample) {
    const std::vector<float> out = applied(augment, set, 3, sample);
    for (std::size_t i = 0; i < 12; ++i) {
      const int first = int(std::lround(out[i] * 255.0f));
      const int second = int(std::lround((out[i + 12] * 0.25f + 0.5f) * 255.0f));
      EXPECT_EQ(second, first == 0 ? 0 : first + 12);
    }
  }
}

TEST(Augment, PaddingLargerThanTheImage) {
  const MemoryDataset set = numbered();
  const Augment augment(set, {.crop_padding = 9}, 1);
  for (std::uint64_t sample = 0; sample < 200; ++sample)
    for (const float value : applied(augment, set, 0, sample)) EXPECT_NE(value, -99.0f);
}

TEST(Augment, KeyedBySeedEpochAndSample) {
  const MemoryDataset set = numbered();
  const AugmentOptions options{.crop_padding = 3, .flip = true};
  const Augment augment(set, options, 1), same(set, options, 1), other(set, options, 2);
  int differ_by_epoch = 0, differ_by_seed = 0;
  for (std::uint64_t sample = 0; sample < 64; ++sample) {
    const std::vector<float> out = applied(augment, set, 0, sample);
    EXPECT_EQ(out, applied(same, set, 0, sample));
    differ_by_epoch += out != applied(augment, set, 1, sample);
    differ_by_seed += out != applied(other, set, 0, sample);
  }
  EXPECT_GT(differ_by_epoch, 40);
  EXPECT_GT(differ_by_seed, 40);
}

}  // namespace
}  // namespace convoy
