#include "data/loader.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace convoy {
namespace {

// `count` images of 1x2x2; label and pixels follow from the index. Reading `bad` throws.
class Numbers final : public Dataset {
 public:
  explicit Numbers(std::size_t count, std::size_t bad = ~std::size_t(0))
      : count_(count), bad_(bad) {}
  std::size_t size() const override { return count_; }
  Shape shape() const override { return {1, 2, 2}; }
  int classes() const override { return 10; }
  int label(std::size_t index) const override { return int(index % 10); }
  void read(std::size_t index, std::span<std::uint8_t> image) const override {
    if (index == bad_) throw DataError("image {} is broken", index);
    std::fill(image.begin(), image.end(), std::uint8_t(index * 7));
  }
  bool in_memory() const override { return in_memory_; }
  std::vector<float> mean() const override { return {0.0f}; }
  std::vector<float> deviation() const override { return {1.0f / 255.0f}; }

  bool in_memory_ = false;

 private:
  std::size_t count_, bad_;
};

std::vector<Batch> rest_of_epoch(Loader& loader) {
  std::vector<Batch> batches;
  while (std::optional<Batch> batch = loader.next()) batches.push_back(std::move(*batch));
  return batches;
}

std::vector<Batch> epoch_of(const Dataset& set, const LoaderOptions& options, std::uint32_t epoch,
                            int first_step = 0) {
  Loader loader(set, options);
  loader.start_epoch(epoch, first_step);
  return rest_of_epoch(loader);
}

void expect_same(const std::vector<Batch>& a, const std::vector<Batch>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].samples, b[i].samples) << i;
    EXPECT_EQ(a[i].labels, b[i].labels) << i;
    EXPECT_EQ(a[i].images, b[i].images) << i;
    EXPECT_EQ(a[i].epoch, b[i].epoch) << i;
  }
}

TEST(Loader, DataInMemoryMakeTheSameBatches) {
  const Numbers apart(103);
  Numbers in_memory(103);
  in_memory.in_memory_ = true;
  const LoaderOptions options{.batch = 16, .augment = {.crop_padding = 1, .flip = true}};
  expect_same(epoch_of(apart, options, 3), epoch_of(in_memory, options, 3));
  expect_same(epoch_of(apart, options, 3, 4), epoch_of(in_memory, options, 3, 4));
}

// Over all ranks: each sample exactly once per epoch, shares of a step differ by at most one,
// together they are the batch that a single rank sees, in its order.
void expect_exactly_once(std::size_t count, int batch, int size) {
  const Numbers set(count);
  const std::vector<Batch> whole = epoch_of(set, {.batch = batch}, 2);
  std::vector<std::vector<std::uint32_t>> steps(whole.size());
  std::vector<std::vector<int>> shares(whole.size());
  std::map<std::uint32_t, int> seen;
  for (int rank = 0; rank < size; ++rank) {
    const std::vector<Batch> mine =
        epoch_of(set, {.batch = batch, .share = {rank, rank + 1, size}}, 2);
    ASSERT_EQ(mine.size(), whole.size());
    for (std::size_t step = 0; step < mine.size(); ++step) {
      const std::vector<std::uint32_t>& samples = mine[step].samples;
      steps[step].insert(steps[step].end(), samples.begin(), samples.end());
      shares[step].push_back(mine[step].size());
      for (const std::uint32_t sample : samples) ++seen[sample];
    }
  }
  EXPECT_EQ(seen.size(), count);
  for (const auto& [sample, times] : seen) EXPECT_EQ(times, 1) << sample;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    EXPECT_EQ(steps[step], whole[step].samples);
    const auto [least, most] = std::minmax_element(shares[step].begin(), shares[step].end());
    EXPECT_LE(*most - *least, 1);
  }
}

TEST(Loader, ExactlyOnceOverAnyNumberOfRanks) {
  for (int size = 1; size <= 7; ++size)
    for (const int batch : {1, 3, 8, 16, 100})
      for (const std::size_t count : {std::size_t(1), std::size_t(16), std::size_t(37)})
        expect_exactly_once(count, batch, size);
}

TEST(Loader, BatchesHoldWhatTheDataSetSays) {
  const Numbers set(21);
  const std::vector<Batch> batches = epoch_of(set, {.batch = 8}, 0);
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[2].size(), 5);  // the last is smaller
  for (const Batch& batch : batches)
    for (int i = 0; i < batch.size(); ++i) {
      const std::uint32_t sample = batch.samples[std::size_t(i)];
      EXPECT_EQ(batch.labels[std::size_t(i)], int(sample % 10));
      for (std::size_t p = 0; p < 4; ++p)
        EXPECT_NEAR(batch.images[std::size_t(i) * 4 + p], std::uint8_t(sample * 7), 1e-3);
    }
}

TEST(Loader, AnEmptyShareIsStillAStep) {
  const Numbers set(10);
  // The last batch has two samples for three ranks.
  int empty = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<Batch> batches = epoch_of(set, {.batch = 4, .share = {rank, rank + 1, 3}}, 0);
    ASSERT_EQ(batches.size(), 3u);
    empty += batches[2].size() == 0;
  }
  EXPECT_EQ(empty, 1);
}

TEST(Loader, ThreadsAndPrefetchDoNotChangeTheBits) {
  const Numbers set(100);
  const AugmentOptions augment{.crop_padding = 1, .flip = true};
  const std::vector<Batch> one = epoch_of(set, {.batch = 7, .augment = augment}, 4);
  for (const int threads : {2, 4})
    for (const int prefetch : {1, 2, 9})
      expect_same(
          one,
          epoch_of(set, {.batch = 7, .augment = augment, .threads = threads, .prefetch = prefetch},
                   4));
}

TEST(Loader, FirstStepSkipsToTheSameBatches) {
  const Numbers set(50);
  const std::vector<Batch> all = epoch_of(set, {.batch = 6}, 3);
  for (int first = 0; first <= int(all.size()); ++first)
    expect_same({all.begin() + first, all.end()},
                epoch_of(set, {.batch = 6, .threads = 2}, 3, first));
}

TEST(Loader, EpochsDoNotDependOnEarlierOnes) {
  const Numbers set(50);
  Loader loader(set, {.batch = 6, .threads = 3});
  EXPECT_FALSE(loader.next().has_value());  // nothing started
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next().has_value());
  loader.start_epoch(1);  // leaves the first in the middle
  expect_same(rest_of_epoch(loader), epoch_of(set, {.batch = 6}, 1));
  EXPECT_FALSE(loader.next().has_value());
  loader.start_epoch(0);
  expect_same(rest_of_epoch(loader), epoch_of(set, {.batch = 6}, 0));
}

TEST(Loader, ShuffleDependsOnSeedAndEpoch) {
  const Numbers set(64);
  const auto order = [&](LoaderOptions options, std::uint32_t epoch) {
    return epoch_of(set, options, epoch).at(0).samples;
  };
  std::vector<std::uint32_t> plain(64);
  for (std::uint32_t i = 0; i < 64; ++i) plain[i] = i;
  EXPECT_EQ(order({.batch = 64, .shuffle = false}, 5), plain);
  const auto base = order({.batch = 64, .seed = 1}, 0);
  EXPECT_NE(base, plain);
  EXPECT_NE(base, order({.batch = 64, .seed = 1}, 1));
  EXPECT_NE(base, order({.batch = 64, .seed = 2}, 0));
  EXPECT_EQ(base, order({.batch = 64, .seed = 1}, 0));
}

TEST(Loader, AWorkersErrorSurfacesFromNext) {
  const Numbers set(40, 17);
  for (const int threads : {1, 4}) {
    Loader loader(set, {.batch = 5, .shuffle = false, .threads = threads});
    loader.start_epoch(0);
    for (int step = 0; step < 3; ++step) EXPECT_TRUE(loader.next().has_value());
    EXPECT_THROW(loader.next(), DataError);
    EXPECT_THROW(loader.next(), DataError);
    loader.start_epoch(0, 4);  // beyond it
    EXPECT_EQ(rest_of_epoch(loader).size(), 4u);
  }
}

TEST(Loader, MayEndAtAnyMoment) {
  const Numbers set(200);
  for (int taken = 0; taken < 20; ++taken) {
    Loader loader(set, {.batch = 3, .threads = 4, .prefetch = 3});
    if (taken > 0) loader.start_epoch(std::uint32_t(taken));
    for (int i = 1; i < taken; ++i) loader.next();
  }
}

TEST(Loader, BadOptionsAreConfigErrors) {
  const Numbers set(4);
  for (const int value : {0, -1}) {
    EXPECT_THROW(Loader(set, {.batch = value}), ConfigError);
    EXPECT_THROW(Loader(set, {.threads = value}), ConfigError);
    EXPECT_THROW(Loader(set, {.prefetch = value}), ConfigError);
  }
  EXPECT_THROW(Loader(set, {.augment = {.crop_padding = -1}}), ConfigError);
}

TEST(Loader, EmptyDataSetHasNoSteps) {
  const Numbers set(0);
  Loader loader(set, {});
  EXPECT_EQ(loader.steps_per_epoch(), 0);
  loader.start_epoch(0);
  EXPECT_FALSE(loader.next().has_value());
}

}  // namespace
}  // namespace convoy
