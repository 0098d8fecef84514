#include "train/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"

namespace convoy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Balance, ReadsWhatTheUserSays) {
  EXPECT_TRUE(parse_balance("auto", 3).automatic);
  EXPECT_THAT(parse_balance("equal", 3).weights, ElementsAre(1, 1, 1));
  EXPECT_THAT(parse_balance("20:1", 2).weights, ElementsAre(20, 1));
  for (const char* bad : {"", "20", "20:", ":1", "20:x", "-1:2", "0:0", "1:2:3", "equal:1"})
    EXPECT_THROW(parse_balance(bad, 2), ConfigError) << bad;
}

TEST(Balance, CutsABatchByWeights) {
  const std::vector<int> weights = {3, 0, 5};
  EXPECT_EQ(share_of(weights, 0), (BatchShare{0, 3, 8}));
  EXPECT_EQ(share_of(weights, 1), (BatchShare{3, 3, 8}));
  EXPECT_EQ(share_of(weights, 2), (BatchShare{3, 8, 8}));
}

TEST(Balance, GivesASlowWorkerItsPart) {
  EXPECT_THAT(balanced(210, std::vector<double>{20, 1}), ElementsAre(200, 10));
  EXPECT_THAT(balanced(128, std::vector<double>{1000, 1}), ElementsAre(127, 1));
  EXPECT_THAT(balanced(100, std::vector<double>{5, 0}), ElementsAre(50, 50));
  EXPECT_THAT(balanced(2, std::vector<double>{1, 1, 1, 1}).size(), 4u);
}

TEST(Balance, AlwaysGivesTheWholeBatch) {
  for (int batch = 1; batch < 200; batch += 7)
    for (int seed = 1; seed < 20; ++seed) {
      std::vector<double> speeds;
      for (int i = 0; i < 1 + seed % 6; ++i) speeds.push_back(1 + (seed * 37 + i * 101) % 50);
      const std::vector<int> shares = balanced(batch, speeds);
      EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), 0), batch);
      for (const int share : shares) EXPECT_GE(share, batch >= int(speeds.size()) ? 1 : 0);
    }
}

TEST(Balance, ChangesOnlyWhereItPays) {
  const std::vector<int> equal = {1, 1};
  EXPECT_THAT(rebalanced(128, equal, std::vector<double>{100, 102}), IsEmpty());
  EXPECT_THAT(rebalanced(128, equal, std::vector<double>{300, 100}), ElementsAre(96, 32));
  EXPECT_THAT(rebalanced(128, std::vector<int>{96, 32}, std::vector<double>{300, 100}), IsEmpty());
}

}  // namespace
}  // namespace convoy
