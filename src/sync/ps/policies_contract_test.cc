// A thousand random schedules for every policy, with servers and workers that are slow, stop for a
// while or die: no gradient is lost, none counts twice, none is staler than its policy allows, and
// all workers end with the same weights.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sync/ps/test_servers.h"

namespace convoy {
namespace {

using namespace test_servers;

std::int64_t killed(const Schedule& schedule) {
  return std::count_if(schedule.faults.begin(), schedule.faults.end(),
                       [](const Fault& fault) { return fault.kind == Fault::Kind::kill; });
}

// The most that a gradient may be behind, in updates.
std::int64_t bound_of(const Schedule& schedule) {
  const std::int64_t others = schedule.workers - 1;
  if (schedule.policy == "sync") return 0;
  if (!schedule.policy.starts_with("ssp")) return 1'000'000;
  const std::int64_t steps = std::stoi(schedule.policy.substr(4));
  return others * (2 * steps + 1);
}

void check(const Schedule& schedule) {
  SCOPED_TRACE(fmt::format("policy {}, seed {}", schedule.policy, schedule.seed - 1));
  Result result;
  ASSERT_NO_THROW(result = run(schedule));
  ASSERT_TRUE(result.finished[0]);
  EXPECT_EQ(result.last.seen, schedule.samples);
  EXPECT_EQ(result.last.missing, 0);
  EXPECT_EQ(result.last.test_correct, 2);
  // Every part of every epoch was leased, and again only if its worker died.
  std::map<std::int64_t, int> leases;
  for (const std::vector<std::int64_t>& list : result.trained)
    for (const std::int64_t lease : list) ++leases[lease];
  int again = 0;
  for (const auto& [lease, times] : leases) again += times - 1;
  EXPECT_LE(again, 2 * killed(schedule));
  std::int64_t pushes = 0, applied = 0, dropped = 0;
  for (const ServerStatistics& server : result.servers) {
    pushes += server.pushes;
    applied += server.applied;
    dropped += server.dropped;
    EXPECT_EQ(server.refused, 0);
    if (killed(schedule) == 0) {
      EXPECT_LE(server.most_stale(), bound_of(schedule));
    }
  }
  EXPECT_EQ(applied + dropped, pushes);
  if (!schedule.policy.starts_with("backup")) {
    EXPECT_EQ(dropped, 0);
  }
  for (std::size_t worker = 0; worker < result.weights.size(); ++worker)
    if (result.finished[worker]) {
      EXPECT_EQ(result.weights[worker], result.weights[0]);
    }
  // Each slice counts, for each worker, the gradients that it took.
  const bool counts = schedule.policy == "async" || schedule.policy.starts_with("ssp");
  if (!counts) return;
  for (std::size_t worker = 0; worker < result.pushed.size(); ++worker)
    for (const auto& [slice, times] : result.pushed[worker]) {
      const float counted = result.weights[0][slice * kWidth + worker];
      const float fewest = float(result.finished[worker] ? times : times - 2);
      EXPECT_TRUE(counted <= float(times) && counted >= fewest) << worker;
    }
}

class EveryPolicy : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryPolicy, HoldsOnAFewSchedules) {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    check(random_schedule(GetParam(), seed));
    if (HasFatalFailure()) return;
  }
}

// Counts of gradients, of which a slice has fewer than 256 by any worker, are exact in bf16; those
// that topk leaves out are zero.
TEST_P(EveryPolicy, SlowHoldsInOtherWireFormats) {
  for (const char* wire : {"bf16", "topk:0.1"})
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      Schedule schedule = random_schedule(GetParam(), seed);
      schedule.wire = wire;
      SCOPED_TRACE(wire);
      check(schedule);
      if (HasFatalFailure()) return;
    }
}

TEST_P(EveryPolicy, SlowHoldsOnAThousandSchedules) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    check(random_schedule(GetParam(), seed));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicy,
                         ::testing::Values("sync", "backup", "async", "ssp", "staleness_aware",
                                           "dc:0.04"),
                         [](const auto& given) {
                           std::string name = given.param;
                           return name.substr(0, name.find(':'));
                         });

// That worker ends with the reason; the others do its work too.
TEST(FaultyPushes, AreRefusedByNameWithoutEffectOnOthers) {
  using Mischief = Schedule::Mischief;
  const std::map<Mischief, std::string> expected = {
      {Mischief::strange_slice, "for slice 0, which server"},
      {Mischief::short_push, "of 128 bytes for slice 0, which has 256"},
      {Mischief::long_push, "1024"},
      {Mischief::not_finite, "not finite"},
      {Mischief::protocol, "another protocol"}};
  for (const char* policy : {"sync", "async", "ssp:1"})
    for (const auto& [mischief, text] : expected) {
      Schedule schedule;
      schedule.workers = 3;
      schedule.servers = 2;
      schedule.layers = 4;
      schedule.epochs = 2;
      schedule.samples = 60;
      schedule.batch = 12;
      schedule.policy = policy;
      schedule.mischief = mischief;
      schedule.cluster.ranks = 5;
      const Result result = run(schedule);
      EXPECT_THAT(result.refusal, ::testing::HasSubstr(text)) << policy;
      EXPECT_THAT(result.refusal, ::testing::HasSubstr("refuses worker 1")) << policy;
      EXPECT_TRUE(result.finished[0] && result.finished[2]) << policy;
      EXPECT_EQ(result.last.seen, 60);
      EXPECT_EQ(result.last.missing, 0);
      EXPECT_EQ(result.weights[0], result.weights[2]);
      EXPECT_EQ(result.servers[0].refused + result.servers[1].refused, 1) << policy;
    }
}

TEST(Schedules, RepeatBitForBit) {
  const Schedule schedule = random_schedule("async", 5);
  const Result first = run(schedule), second = run(schedule);
  EXPECT_EQ(first.weights, second.weights);
  EXPECT_EQ(first.trained, second.trained);
}

}  // namespace
}  // namespace convoy
