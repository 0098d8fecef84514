#include "world/launch/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace convoy {
namespace {

using ::testing::HasSubstr;

Verdict three_ranks() {
  Verdict verdict({"a", "b"}, {0, 0, 1});
  for (const int rank : {0, 1, 2}) verdict.started(rank, 100 + rank);
  return verdict;
}

TEST(Verdict, NothingIsWrongWhileRanksEndWell) {
  Verdict verdict = three_ranks();
  verdict.ended(1, {.pid = 101});
  EXPECT_FALSE(verdict.failing());
  EXPECT_EQ(verdict.result().code, 0);
}

TEST(Verdict, TheKilledRankIsTheCauseEvenIfOthersEndFirst) {
  Verdict verdict = three_ranks();
  verdict.ended(0, {.code = 1, .lost = 2, .why = "rank 2 is lost"});
  EXPECT_TRUE(verdict.failing());
  EXPECT_FALSE(verdict.decided());
  verdict.ended(1, {.code = 3});
  EXPECT_FALSE(verdict.decided());
  verdict.ended(2, {.signal = 9});
  EXPECT_TRUE(verdict.decided());
  EXPECT_EQ(verdict.result().code, 137);
  EXPECT_EQ(verdict.result().reason, "rank 2 (pid 102, host b) was killed by signal 9 (SIGKILL)");
}

TEST(Verdict, OwnFailuresComeBeforeMissingPeers) {
  Verdict verdict = three_ranks();
  verdict.ended(0, {.code = 1, .lost = 1, .why = "rank 1 is lost"});
  verdict.ended(1, {.code = 4, .why = "disk full"});
  verdict.ended(2, {.code = 5});
  EXPECT_EQ(verdict.result().code, 4);
  EXPECT_EQ(verdict.result().reason, "rank 1 (pid 101, host a) ended with exit code 4: disk full");
}

TEST(Verdict, ARankThatIsOnlyMissedIsNamed) {
  Verdict verdict = three_ranks();
  verdict.ended(0, {.code = 1, .lost = 2, .why = "silent for 5 s"});
  verdict.sent(15);
  verdict.ended(1, {.signal = 15});
  verdict.sent(9);
  verdict.ended(2, {.signal = 9});
  EXPECT_EQ(verdict.result().code, 1);
  EXPECT_EQ(verdict.result().reason, "rank 2 (pid 102, host b) was lost: silent for 5 s");
}

TEST(Verdict, AMissedRankThatEndsWellWasNotLost) {
  Verdict verdict = three_ranks();
  verdict.lost(1, "its connection ended");
  EXPECT_TRUE(verdict.failing());
  verdict.ended(2, {});
  EXPECT_TRUE(verdict.failing());
  verdict.ended(1, {});
  EXPECT_FALSE(verdict.failing());
  EXPECT_EQ(verdict.result().code, 0);
}

TEST(Verdict, WhatRanksDoOnRequestIsNoCause) {
  Verdict verdict = three_ranks();
  verdict.sent(15);
  verdict.ended(0, {.signal = 15});
  verdict.ended(1, {.code = 1});
  EXPECT_FALSE(verdict.failing());
  verdict.failed("host b: no agent", 1);
  EXPECT_THAT(verdict.result().reason, HasSubstr("no agent"));
}

// Rank 0 is needed, the others are not.
Verdict a_needed_one() {
  Verdict verdict({"a", "b"}, {0, 0, 1}, 1);
  for (const int rank : {0, 1, 2}) verdict.started(rank, 100 + rank);
  return verdict;
}

TEST(Verdict, AJobGoesOnWithoutRanksThatItDoesNotNeed) {
  Verdict verdict = a_needed_one();
  verdict.lost(2, "killed by SIGKILL");
  verdict.ended(2, {.signal = 9});
  verdict.ended(1, {.code = 1, .lost = 2, .why = "rank 2 is lost"});
  EXPECT_FALSE(verdict.failing());
  EXPECT_FALSE(verdict.done());
  EXPECT_THAT(
      verdict.take_losses(),
      ::testing::ElementsAre(
          "rank 2 (pid 102, host b) was lost: killed by SIGKILL; the job goes on without it",
          "rank 1 (pid 101, host a) ended: rank 2 is lost; the job goes on without it"));
  EXPECT_FALSE(verdict.has_losses());
  verdict.ended(0, {});
  EXPECT_TRUE(verdict.done());
  EXPECT_EQ(verdict.result().code, 0);
}

TEST(Verdict, ANeededRankThatFailsForALostOneNamesItsCause) {
  for (const bool before : {true, false}) {
    Verdict verdict = a_needed_one();
    if (before) verdict.ended(2, {.signal = 9});
    verdict.ended(0, {.code = 1, .lost = 2, .why = "rank 2 is lost"});
    EXPECT_TRUE(verdict.failing());
    if (!before) verdict.ended(2, {.signal = 9});
    EXPECT_TRUE(verdict.decided());
    EXPECT_EQ(verdict.result().reason, "rank 2 (pid 102, host b) was killed by signal 9 (SIGKILL)");
  }
}

TEST(Verdict, ANeededRankThatFailsByItselfIsTheCauseWhoeverWasLostBefore) {
  Verdict verdict = a_needed_one();
  verdict.ended(2, {.signal = 9});
  verdict.ended(0, {.code = 1, .why = "disk full"});
  EXPECT_EQ(verdict.result().reason, "rank 0 (pid 100, host a) ended with exit code 1: disk full");
}

TEST(Verdict, WhatARankThatIsNotNeededWasToldWrongEndsTheJob) {
  Verdict verdict = a_needed_one();
  verdict.ended(1, {.code = 2, .why = "--lr x: not a number"});
  EXPECT_TRUE(verdict.failing());
  EXPECT_EQ(verdict.result().code, 2);
}

}  // namespace
}  // namespace convoy
