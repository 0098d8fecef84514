#include "world/launch/cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<int> kCores = {2, 3, 5, 7, 11, 13, 17};

TEST(Cores, AreDividedIntoContiguousSets) {
  const CoreShares shares = divide_cores(kCores, 64, 3, 0);
  EXPECT_THAT(shares.of_rank,
              ElementsAre(ElementsAre(2, 3), ElementsAre(5, 7), ElementsAre(11, 13)));
  EXPECT_EQ(shares.per_rank, 2);
  EXPECT_FALSE(shares.oversubscribed);
  EXPECT_EQ(shares.text(), "3 ranks, 2 cores each, pinned");
}

TEST(Cores, AsManyAsAskedFor) {
  EXPECT_THAT(divide_cores(kCores, 64, 2, 1).of_rank, ElementsAre(ElementsAre(2), ElementsAre(3)));
  EXPECT_THROW(divide_cores(kCores, 64, 4, 2), ConfigError);
}

TEST(Cores, MoreRanksThanCoresAreNotPinned) {
  const CoreShares shares = divide_cores(kCores, 64, 8, 0);
  EXPECT_THAT(shares.of_rank, ::testing::Each(IsEmpty()));
  EXPECT_TRUE(shares.oversubscribed);
  EXPECT_EQ(shares.per_rank, 1);
}

TEST(Cores, AQuotaCountsAndLeavesTheChoiceToTheSystem) {
  const CoreShares shares = divide_cores(kCores, 4, 2, 0);
  EXPECT_EQ(shares.per_rank, 2);
  EXPECT_THAT(shares.of_rank, ::testing::Each(IsEmpty()));
  EXPECT_TRUE(divide_cores(kCores, 1, 2, 0).oversubscribed);
}

}  // namespace
}  // namespace convoy
