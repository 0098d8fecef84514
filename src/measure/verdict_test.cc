#include "measure/verdict.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace convoy {
namespace {

using ::testing::HasSubstr;

RankTotals totals(double load, double compute, double communication, double wait,
                  int waited_rank = -1) {
  RankTotals rank{.waited_rank = waited_rank, .waited_s = wait};
  rank.seconds[std::size_t(Phase::load)] = load;
  rank.seconds[std::size_t(Phase::forward)] = compute;
  rank.seconds[std::size_t(Phase::communication)] = communication;
  rank.seconds[std::size_t(Phase::wait)] = wait;
  return rank;
}

TEST(Verdict, OfOneWorker) {
  EXPECT_EQ(verdict(std::vector{totals(1, 99, 0, 0)}),
            "computation is 99 % of each step, loading data 1 %");
  EXPECT_THAT(verdict(std::vector{totals(50, 50, 0, 0)}),
              HasSubstr("the loader is the bottleneck"));
  EXPECT_EQ(verdict(std::vector{totals(0, 0, 0, 0)}), "");
  EXPECT_EQ(verdict({}), "");
}

TEST(Verdict, NamesTheRankThatIsWaitedFor) {
  const std::vector ranks = {totals(1, 60, 5, 34, 2), totals(1, 60, 5, 34, 2),
                             totals(35, 60, 5, 0)};
  EXPECT_EQ(verdict(ranks),
            "waiting for rank 2 is 23 % of each step: rank 2 is the bottleneck (loading data 35 "
            "times as long as the others)");
  const std::vector slow = {totals(1, 50, 1, 48, 1), totals(1, 98, 1, 0)};
  EXPECT_THAT(verdict(slow), HasSubstr("rank 1 is the bottleneck (computing 1.96 times"));
}

TEST(Verdict, NamesCommunication) {
  const std::vector ranks = {totals(1, 60, 38, 1, 1), totals(1, 60, 38, 1, 0)};
  EXPECT_EQ(verdict(ranks), "communication is 38 % of each step: that is the bottleneck");
}

TEST(Verdict, SaysThatMoreWorkersWouldPay) {
  const std::vector ranks = {totals(1, 97, 1, 1, 1), totals(1, 97, 1, 1, 0)};
  EXPECT_THAT(verdict(ranks), HasSubstr("communication is 2 % of each step"));
  EXPECT_THAT(verdict(ranks), HasSubstr("more workers would pay"));
}

TEST(Verdict, WaitingByTurns) {
  const std::vector ranks = {totals(1, 70, 1, 28, 1), totals(1, 70, 1, 28, 2),
                             totals(1, 70, 1, 28, 0)};
  EXPECT_THAT(verdict(ranks), HasSubstr("by turns"));
}

TEST(VerdictWithServers, SaysWhatParametersAreWaitedFor) {
  const auto said = [](const std::vector<RankTotals>& workers) {
    return verdict_with_servers(workers);
  };
  EXPECT_EQ(said({totals(1, 58, 20, 21), totals(1, 59, 20, 20)}),
            "waiting for parameters is 40 % of each step: servers and network are the bottleneck");
  EXPECT_EQ(said({totals(1, 48, 1, 50), totals(1, 96, 1, 2)}),
            "waiting for parameters is 27 % of each step: worker 1 is the bottleneck (computing 2 "
            "times as long as the others)");
  EXPECT_THAT(said({totals(1, 97, 1, 1), totals(1, 97, 1, 1)}),
              HasSubstr("more workers would pay"));
  EXPECT_THAT(said({totals(60, 30, 5, 5)}), HasSubstr("the loader is the bottleneck"));
  EXPECT_EQ(said({}), "");
}

TEST(Sparkline, FollowsTheValues) {
  EXPECT_EQ(sparkline(std::vector{7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0}, 8), "█▇▆▅▄▃▂▁");
  EXPECT_EQ(sparkline(std::vector{0.0, 0.0, 4.0, 4.0}, 2), "▁█");
  EXPECT_EQ(sparkline(std::vector{1.0, 1.0}, 8), "▁▁");
  EXPECT_EQ(sparkline(std::vector{1.0, std::nan(""), 2.0}, 8), "▁█");
  EXPECT_EQ(sparkline(std::vector{1.0}, 8), "");
}

}  // namespace
}  // namespace convoy
