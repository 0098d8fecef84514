#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace convoy {
namespace {

using Counter = std::array<std::uint32_t, 4>;

// The known answers that Random123 publishes for philox4x32-10.
TEST(Philox, GivesThePublishedNumbers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, SameKeySameNumbers) {
  Rng a(1, Purpose::shuffle, 2, 3), b(1, Purpose::shuffle, 2, 3);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next(), b.next());
}

TEST(Rng, EveryPartOfTheKeyCounts) {
  std::set<std::uint32_t> first;
  const auto add = [&](Rng rng) { first.insert(rng.next()); };
  add(Rng(1, Purpose::shuffle, 0, 0));
  add(Rng(2, Purpose::shuffle, 0, 0));
  add(Rng(1 + (std::uint64_t{1} << 32), Purpose::shuffle, 0, 0));
  add(Rng(1, Purpose::augment, 0, 0));
  add(Rng(1, Purpose::shuffle, 1, 0));
  add(Rng(1, Purpose::shuffle, 0, 1));
  add(Rng(1, Purpose::shuffle, 0, std::uint64_t{1} << 32));
  EXPECT_EQ(first.size(), 7u);
}

TEST(Rng, UniformFillsItsRange) {
  Rng rng(1, Purpose::test);
  double sum = 0;
  float low = 1, high = 0;
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    const float x = rng.uniform();
    ASSERT_GE(x, 0.0f);
    ASSERT_LT(x, 1.0f);
    sum += x;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
  EXPECT_LT(low, 0.001f);
  EXPECT_GT(high, 0.999f);
}

TEST(Rng, NormalHasItsMoments) {
  Rng rng(1, Purpose::test);
  constexpr int kCount = 200'000;
  double sum = 0, squares = 0, cubes = 0, fourths = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = rng.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    cubes += x * x * x;
    fourths += x * x * x * x;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.02);
  EXPECT_NEAR(cubes / kCount, 0, 0.05);
  EXPECT_NEAR(fourths / kCount, 3, 0.1);
}

TEST(Rng, BelowIsUniform) {
  Rng rng(1, Purpose::test);
  std::vector<int> seen(7);
  for (int i = 0; i < 70'000; ++i) ++seen.at(rng.below(7));
  for (int count : seen) EXPECT_NEAR(count, 10'000, 400);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rng.below(1), 0u);
}

}  // namespace
}  // namespace convoy
