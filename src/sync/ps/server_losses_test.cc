// Random schedules in which servers die, beside workers that are slow, stop for a while or die.
// With a replica nothing that was answered is lost and nothing counts twice; without one, what is
// missing is what the takeover says.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sync/ps/test_servers.h"

namespace convoy {
namespace {

using namespace test_servers;
using ::testing::HasSubstr;

struct Given {
  const char* policy;
  int replicas;
};

Schedule with_lost_servers(const Given& given, std::uint64_t seed) {
  Schedule made = random_schedule(given.policy, seed);
  Rng rng(seed, Purpose::test, 11);
  const auto below = [&](int bound) { return int(rng.below(std::uint32_t(bound))); };
  made.servers = 2 + below(2);
  made.layers = made.servers + below(4);
  made.cluster.ranks = made.workers + made.servers;
  made.cluster.speed.assign(std::size_t(made.cluster.ranks), 1.0);
  made.samples = made.batch * (4 + below(6));
  made.replicas = given.replicas;
  made.snapshot_every = 1 + below(6);
  made.may_end = true;
  for (int deaths = 1 + below(made.servers - 1); deaths > 0; --deaths)
    made.faults.push_back(
        {.at_s = 2e-3 + 1e-3 * below(60), .rank = made.workers + below(made.servers)});
  return made;
}

bool dies(const Schedule& schedule, int rank) {
  return std::any_of(schedule.faults.begin(), schedule.faults.end(), [&](const Fault& fault) {
    return fault.kind == Fault::Kind::kill && fault.rank == rank;
  });
}

int dead_servers(const Schedule& schedule) {
  int count = 0;
  for (int rank = schedule.workers; rank < schedule.cluster.ranks; ++rank)
    count += dies(schedule, rank);
  return count;
}

bool a_worker_dies(const Schedule& schedule) {
  for (int rank = 0; rank < schedule.workers; ++rank)
    if (dies(schedule, rank)) return true;
  return false;
}

// Number w of a slice counts the gradients of worker w that moved it, where each is an update.
void check_counts(const Schedule& schedule, const Result& result) {
  std::int64_t missing = 0, most = 0;
  for (std::uint32_t slice = 0; slice * kWidth < result.weights[0].size(); ++slice) {
    std::int64_t of_slice = 0;
    for (std::size_t worker = 0; worker < result.pushed.size(); ++worker) {
      const auto& pushed = result.pushed[worker];
      const std::int64_t times = pushed.contains(slice) ? pushed.at(slice) : 0;
      const std::int64_t counted = std::llround(result.weights[0][slice * kWidth + worker]);
      EXPECT_LE(counted, times) << "worker " << worker << " slice " << slice;
      if (result.finished[worker]) of_slice += times - counted;
    }
    missing += of_slice;
    most = std::max(most, of_slice);
  }
  if (schedule.replicas > 0) {
    EXPECT_EQ(missing, 0);
  }
  if (dead_servers(schedule) > 1) return;  // of the second, before the first was told
  if (!a_worker_dies(schedule)) {
    EXPECT_EQ(missing, result.leader.lost_gradients);
  }
  EXPECT_LE(most, result.leader.lost_updates);
}

// True: the run went on to its end.
bool check(const Schedule& schedule) {
  const Result result = run(schedule);
  if (!result.finished[0]) {
    // Before the training began, there was nothing to go on with.
    EXPECT_THAT(result.failure, HasSubstr(result.trained[0].empty() ? "is lost" : "--resume"));
    return false;
  }
  EXPECT_EQ(result.last.seen, schedule.samples);
  EXPECT_EQ(result.last.missing, 0);
  EXPECT_EQ(result.last.test_correct, 2);
  for (std::size_t worker = 0; worker < result.weights.size(); ++worker) {
    EXPECT_EQ(result.finished[worker], !dies(schedule, int(worker)) || result.finished[worker]);
    if (result.finished[worker]) {
      EXPECT_EQ(result.weights[worker], result.weights[0]);
    }
  }
  if (schedule.replicas > 0) {
    EXPECT_EQ(result.leader.lost_updates, 0);
    EXPECT_EQ(result.leader.lost_gradients, 0);
  }
  const bool counts = schedule.policy == "async" || schedule.policy.starts_with("ssp");
  if (counts) check_counts(schedule, result);
  if (schedule.policy == "sync" && schedule.replicas > 0 && !a_worker_dies(schedule)) {
    Schedule calm = schedule;
    calm.faults.clear();
    EXPECT_EQ(run(calm).weights, result.weights);
  }
  return true;
}

class LostServers : public ::testing::TestWithParam<Given> {
 protected:
  void hold_on(std::uint64_t schedules) {
    std::uint64_t finished = 0;
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      const Schedule schedule = with_lost_servers(GetParam(), seed);
      SCOPED_TRACE(fmt::format("policy {}, seed {}", schedule.policy, seed));
      bool ended = false;
      ASSERT_NO_THROW(ended = check(schedule));
      finished += ended;
      if (HasFailure()) return;
    }
    EXPECT_GT(finished, schedules / 2);
  }
};

TEST_P(LostServers, CostWhatIsPromisedOnAFewSchedules) { hold_on(15); }
TEST_P(LostServers, SlowCostWhatIsPromisedOnAThousandSchedules) { hold_on(1000); }

INSTANTIATE_TEST_SUITE_P(Policies, LostServers,
                         ::testing::Values(Given{"sync", 1}, Given{"sync", 0}, Given{"backup", 1},
                                           Given{"async", 1}, Given{"async", 0}, Given{"ssp", 1},
                                           Given{"ssp", 0}, Given{"dc:0.04", 1},
                                           Given{"dc:0.04", 0}),
                         [](const auto& given) {
                           std::string name = given.param.policy;
                           return name.substr(0, name.find(':')) +
                                  (given.param.replicas > 0 ? "_with_a_replica" : "");
                         });

TEST(LostServers, EndTheRunWhereNobodyHasACopy) {
  for (const int servers : {1, 2, 3}) {
    Schedule schedule;
    schedule.workers = 2;
    schedule.servers = schedule.layers = servers;
    schedule.samples = 400;
    schedule.batch = 4;
    schedule.policy = servers == 3 ? "backup:1" : "async";
    schedule.snapshot_every = servers == 2 ? 0 : 5;
    schedule.cluster.ranks = 2 + servers;
    schedule.may_end = true;
    schedule.faults = {{.at_s = 0.03, .rank = 2}};
    EXPECT_THAT(run(schedule).failure, HasSubstr("server 0 is lost (")) << servers;
    EXPECT_THAT(run(schedule).failure, HasSubstr("--resume")) << servers;
  }
}

}  // namespace
}  // namespace convoy
