#include "sync/exact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>

#include "base/rng.h"
#include "sync/collective_worlds.h"

namespace convoy {
namespace {

using testing::HasSubstr;

constexpr std::size_t kCount = 70'000;  // two blocks

// Values of very different sizes, whose sum in f32 depends on the order.
std::vector<std::vector<float>> make_shards(int count, std::size_t length = kCount) {
  std::vector<std::vector<float>> shards;
  for (int shard = 0; shard < count; ++shard) {
    Rng rng(7, Purpose::test, 0, std::uint64_t(shard));
    std::vector<float>& values = shards.emplace_back(length);
    for (float& value : values) value = std::ldexp(rng.normal(), int(rng.below(40)) - 20);
  }
  return shards;
}

// Deals the shards to the ranks: in turn, or in blocks of unequal size.
std::vector<std::span<const float>> dealt(const std::vector<std::vector<float>>& shards, int rank,
                                          int ranks, bool in_turn) {
  std::vector<std::span<const float>> own;
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    const int owner = in_turn ? int(shard) % ranks : std::min(int(shard) / 3, ranks - 1);
    if (owner == rank) own.push_back(shards[shard]);
  }
  return own;
}

struct Trial {
  int ranks = 1;
  std::string algorithm = "ring";
  bool in_turn = true;
};

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

// The result, which all ranks must have.
std::vector<float> result_of(const Trial& trial, const std::vector<std::vector<float>>& shards,
                             Reduction reduction) {
  std::mutex mutex;
  std::vector<std::vector<float>> results;
  run_inproc(trial.ranks, {.host_of = hosts_of(trial.ranks, 4)}, [&](World world) {
    Communicator communicator(world.runtime, world.transport,
                              {.algorithm = trial.algorithm, .segment_bytes = 10'000});
    std::vector<float> result(shards[0].size());
    all_reduce_exact(communicator,
                     dealt(shards, world.transport.rank(), trial.ranks, trial.in_turn), result,
                     reduction);
    communicator.barrier();
    world.transport.close(60);
    const std::lock_guard lock(mutex);
    results.push_back(std::move(result));
  });
  for (const std::vector<float>& result : results)
    EXPECT_TRUE(std::ranges::equal(result, results[0], {}, bits_of, bits_of));
  return results[0];
}

TEST(ExactTest, SameBitsForEveryAlgorithmAndNumberOfRanksAndSplit) {
  const auto shards = make_shards(11);
  for (const Reduction reduction : {Reduction::sum, Reduction::mean}) {
    const std::vector<float> one = result_of({}, shards, reduction);
    for (int ranks = 1; ranks <= 9; ++ranks)
      for (const Algorithm& algorithm : algorithms()) {
        if (algorithm.run == native) continue;
        const Trial trial{ranks, std::string(algorithm.name), ranks % 2 == 0};
        const std::vector<float> other = result_of(trial, shards, reduction);
        ASSERT_EQ(std::memcmp(other.data(), one.data(), kCount * 4), 0)
            << algorithm.name << " on " << ranks << " ranks";
      }
  }
}

class ExactContract : public testing::TestWithParam<CollectiveWorld> {};

TEST_P(ExactContract, SameBitsInEveryWorld) {
  const auto shards = make_shards(5);
  const std::vector<float> right = result_of({}, shards, Reduction::mean);
  for (int ranks = 1; ranks <= 4; ++ranks)
    GetParam().run(ranks, [&](World world) {
      for (const Algorithm& algorithm : algorithms()) {
        if (algorithm.run == native && !offers_native(world.transport)) continue;
        Communicator communicator(world.runtime, world.transport,
                                  {.algorithm = std::string(algorithm.name)});
        std::vector<float> result(kCount);
        all_reduce_exact(communicator, dealt(shards, world.transport.rank(), ranks, true), result,
                         Reduction::mean);
        communicator.barrier();
        if (std::memcmp(result.data(), right.data(), kCount * 4) != 0)
          throw std::runtime_error(fmt::format("{} on {} ranks", algorithm.name, ranks));
      }
      world.transport.close(60);
    });
}

INSTANTIATE_TEST_SUITE_P(Worlds, ExactContract, testing::ValuesIn(collective_worlds()),
                         [](const auto& tested) { return tested.param.name; });

TEST(ExactTest, CloserToTheTrueSumThanFloats) {
  const auto shards = make_shards(64);
  const std::vector<float> exact = result_of({.ranks = 3}, shards, Reduction::sum);
  for (std::size_t i = 0; i < kCount; ++i) {
    double sum = 0;
    for (const auto& shard : shards) sum += shard[i];
    // Half a unit of the float, and 64 times what is lost of values far below the block's largest.
    const double allowed = std::fabs(sum) * 0x1p-24 + 64 * 0x1p25 * 0x1p-51;
    ASSERT_NEAR(exact[i], sum, allowed) << i;
  }
}

TEST(ExactTest, NoElementsNoShardsAndZeros) {
  EXPECT_TRUE(result_of({.ranks = 3}, make_shards(4, 0), Reduction::sum).empty());
  const std::vector<std::vector<float>> zeros(2, std::vector<float>(5, 0.0f));
  for (float value : result_of({.ranks = 4}, zeros, Reduction::mean)) EXPECT_EQ(value, 0.0f);
}

TEST(ExactTest, DenormalsCountAsZero) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<std::vector<float>> shards = {{tiny, 1.0f}, {tiny, 2.0f}};
  EXPECT_EQ(result_of({.ranks = 2}, shards, Reduction::sum), (std::vector<float>{0.0f, 3.0f}));
}

TEST(ExactTest, LargestNumbersDoNotOverflowOnTheWay) {
  const float most = std::numeric_limits<float>::max();
  std::vector<std::vector<float>> shards;
  for (int shard = 0; shard < kMostShards; ++shard) shards.push_back({shard % 2 ? most : -most});
  shards.back() = {5.0f};
  shards[0] = {0.0f};
  EXPECT_EQ(result_of({.ranks = 2}, shards, Reduction::sum)[0], 0.0f);  // 5 is below 2^-51 of them
  shards.push_back({0.0f});
  EXPECT_THROW(result_of({}, shards, Reduction::sum), ConfigError);
}

TEST(ExactTest, EveryRankRefusesWhatIsNotFiniteAndNamesIt) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::mutex mutex;
    std::vector<std::string> refusals;
    run_inproc(3, {}, [&](World world) {
      Communicator communicator(world.runtime, world.transport, {.algorithm = "ring"});
      std::vector<float> values(kCount, 1.0f), result(kCount);
      if (world.transport.rank() == 1) values[66'001] = bad;
      const std::span<const float> shard = values;
      try {
        all_reduce_exact(communicator, {&shard, 1}, result);
      } catch (const DataError& error) {
        const std::lock_guard lock(mutex);
        refusals.emplace_back(error.what());
      }
      communicator.barrier();  // the communicator goes on
      world.transport.close(60);
    });
    ASSERT_EQ(refusals.size(), 3u);
    for (const std::string& text : refusals) EXPECT_THAT(text, HasSubstr("rank 1: element 66001"));
  }
}

}  // namespace
}  // namespace convoy
