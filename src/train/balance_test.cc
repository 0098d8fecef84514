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

// Workers of which each does so many images in a second, whatever its share.
std::vector<StepCost> of_speeds(const std::vector<double>& speeds) {
  std::vector<StepCost> costs(speeds.size());
  for (std::size_t i = 0; i < speeds.size(); ++i) costs[i].see(100, 100 / speeds[i]);
  return costs;
}

TEST(Balance, GivesASlowWorkerItsPart) {
  EXPECT_THAT(balanced(210, of_speeds({20, 1})), ElementsAre(200, 10));
  EXPECT_THAT(balanced(128, of_speeds({100000, 1})), ElementsAre(128, 0));
  EXPECT_THAT(balanced(96, of_speeds({1, 1, 1})), ElementsAre(32, 32, 32));
}

TEST(Balance, AlwaysGivesTheWholeBatch) {
  for (int batch = 1; batch < 200; batch += 7)
    for (int seed = 1; seed < 20; ++seed) {
      std::vector<double> speeds;
      for (int i = 0; i < 1 + seed % 6; ++i) speeds.push_back(1 + (seed * 37 + i * 101) % 50);
      const std::vector<int> shares = balanced(batch, of_speeds(speeds));
      EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), 0), batch);
      for (const int share : shares) EXPECT_GE(share, 0);
    }
}

TEST(Balance, LearnsWhatAStepCostsBesidesItsSamples) {
  StepCost cost;
  cost.see(64, 1.64);
  EXPECT_DOUBLE_EQ(cost.per_step_s(), 0);
  cost.see(6, 1.06);
  EXPECT_NEAR(cost.per_step_s(), 1, 1e-9);
  EXPECT_NEAR(cost.per_sample_s(), 0.01, 1e-9);
  EXPECT_EQ(cost.seconds(0), 0);
  // Not worth a share beside somebody who does all in less than a second.
  std::vector<StepCost> costs = of_speeds({200});
  costs.push_back(cost);
  EXPECT_THAT(balanced(128, costs), ElementsAre(128, 0));
}

TEST(Balance, ChangesOnlyWhereItPays) {
  const std::vector<int> equal = {1, 1};
  EXPECT_THAT(rebalanced(128, equal, of_speeds({100, 102})), IsEmpty());
  EXPECT_THAT(rebalanced(128, equal, of_speeds({300, 100})), ElementsAre(96, 32));
  EXPECT_THAT(rebalanced(128, std::vector<int>{96, 32}, of_speeds({300, 100})), IsEmpty());
  std::vector<StepCost> unknown(2);
  EXPECT_THAT(rebalanced(128, equal, unknown), IsEmpty());
}

}  // namespace
}  // namespace convoy
