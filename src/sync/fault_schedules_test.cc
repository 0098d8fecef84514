// Ten thousand random schedules of kills, pauses, cuts and slow links during collectives. Each must
// end in the right sum, or in an error that names a rank that was really lost; never in a hang or a
// wrong sum. And rings that are broken on purpose must be found.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/rng.h"
#include "sync/communicator.h"
#include "world/sim/sim.h"

namespace convoy {
namespace {

struct Schedule {
  std::uint64_t seed = 0;
  Cluster cluster;
  std::vector<Fault> faults;
  const Algorithm* algorithm = nullptr;
  std::size_t elements = 0;
  std::size_t segment_bytes = 0;

  std::string text() const;
};

struct Outcome {
  std::string violation = {};  // empty: the right sum everywhere, or errors that name who was lost
  bool all_closed = false;
  bool somebody_failed = false;
};

constexpr double kHeartbeat_s = 0.5;
constexpr int kOperations = 3;

class WrongSum : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

float value_at(std::size_t place, int rank, int number) {
  return float((place * 5 + std::size_t(rank) * 11 + std::size_t(number) * 3) % 17);
}

void check(std::span<const float> values, int ranks, int number) {
  for (std::size_t place = 0; place < values.size(); ++place) {
    float right = 0;
    for (int rank = 0; rank < ranks; ++rank) right += value_at(place, rank, number);
    if (values[place] != right)
      throw WrongSum(fmt::format("element {} of all-reduce {} is {}, not {}", place, number,
                                 values[place], right));
  }
}

Fault random_fault(Rng& rng, int ranks) {
  constexpr std::array kKinds{Fault::Kind::kill, Fault::Kind::pause, Fault::Kind::cut,
                              Fault::Kind::slow};
  Fault fault{.kind = kKinds[rng.below(kKinds.size())]};
  fault.at_s = rng.uniform() * rng.uniform() * 0.02;
  fault.rank = int(rng.below(std::uint32_t(ranks)));
  fault.factor = 2 + 20 * rng.uniform();
  // Half of what can end ends soon enough to be no loss.
  if (rng.below(2) == 0) fault.until_s = fault.at_s + rng.uniform() * 0.5 * kHeartbeat_s;
  if (rng.below(4) != 0)
    fault.peer = (fault.rank + 1 + int(rng.below(std::uint32_t(ranks - 1)))) % ranks;
  return fault;
}

// Those that somebody may rightly call lost.
std::set<int> suspects(const Schedule& schedule) {
  std::set<int> ranks;
  for (const Fault& fault : schedule.faults) {
    if (fault.kind == Fault::Kind::slow) continue;
    ranks.insert(fault.rank);
    if (fault.kind == Fault::Kind::cut && fault.peer != kAnyRank) ranks.insert(fault.peer);
  }
  return ranks;
}

// Why this end of a rank breaks the promise; empty where it does not.
std::string judge(const Schedule& schedule, const SimResult& result, int rank) {
  const std::set<int> lost = suspects(schedule);
  const SimResult::Rank& end = result.ranks[std::size_t(rank)];
  if (end.end == SimResult::Rank::End::killed) {
    const bool meant =
        std::any_of(schedule.faults.begin(), schedule.faults.end(), [&](const Fault& f) {
          const bool for_ever = f.kind == Fault::Kind::pause && f.until_s == kForever;
          return (f.kind == Fault::Kind::kill || for_ever) && f.rank == rank;
        });
    return meant ? "" : fmt::format("rank {} was killed by nobody", rank);
  }
  if (end.end == SimResult::Rank::End::closed) return "";
  if (!end.failure) return fmt::format("rank {} ended without close", rank);
  try {
    std::rethrow_exception(end.failure);
  } catch (const PeerLost& error) {
    // A rank that was cut off or stood still may find that the others have left without it.
    const SimResult::Rank& named = result.ranks[std::size_t(error.rank())];
    const bool left = named.end != SimResult::Rank::End::returned;
    if (lost.count(error.rank()) > 0 || (lost.count(rank) > 0 && left)) return "";
    // Of two that lost each other a third cannot know which: both are named.
    const std::string text = error.what();
    for (int other : lost)
      if (text.find(fmt::format("it and rank {} lost each other", other)) != std::string::npos)
        return "";
    return fmt::format("rank {} names the wrong one: {}", rank, error.what());
  } catch (const std::exception& error) {
    return fmt::format("rank {}: {}", rank, error.what());
  }
}

std::string Schedule::text() const {
  std::string all;
  for (const Fault& fault : faults)
    all += fmt::format(" [kind {} rank {} peer {} at {:.6f} until {:.6f}]", int(fault.kind),
                       fault.rank, fault.peer, fault.at_s, fault.until_s);
  return fmt::format("seed {}: {} on {} ranks, {} elements in segments of {},{}", seed,
                     algorithm->name, cluster.ranks, elements, segment_bytes, all);
}

// `algorithm` null: one of the table, by chance.
Schedule make_schedule(std::uint64_t seed, const Algorithm* algorithm = nullptr) {
  Rng rng(seed, Purpose::test);
  Schedule schedule{.seed = seed, .cluster = {}, .faults = {}};
  const int ranks = 2 + int(rng.below(6));
  schedule.cluster.ranks = ranks;
  const int per_host = 1 + int(rng.below(3));
  for (int rank = 0; rank < ranks; ++rank) schedule.cluster.host_of.push_back(rank / per_host);
  schedule.cluster.network = {.latency_s = 1e-4, .bytes_per_s = 1e6};
  const std::size_t rows = algorithms().size() - 1;  // without native
  const std::uint32_t row = rng.below(std::uint32_t(rows));
  schedule.algorithm = algorithm ? algorithm : &algorithms()[row];
  schedule.elements = rng.below(400);
  schedule.segment_bytes = 16 + rng.below(300);
  const std::uint32_t faults = 1 + rng.below(2);
  for (std::uint32_t i = 0; i < faults; ++i) schedule.faults.push_back(random_fault(rng, ranks));
  return schedule;
}

Outcome run_schedule(const Schedule& schedule) {
  const SimOptions options{.seed = schedule.seed,
                           .faults = schedule.faults,
                           .heartbeat_deadline_s = kHeartbeat_s,
                           .region_bytes = std::size_t{32} << 20,
                           .rethrow = false};
  const auto body = [&](World world) {
    Communicator communicator(world.runtime, world.transport,
                              {.timeout_s = 20, .segment_bytes = schedule.segment_bytes});
    std::vector<float> values(schedule.elements);
    for (int number = 0; number < kOperations; ++number) {
      for (std::size_t place = 0; place < values.size(); ++place)
        values[place] = value_at(place, world.transport.rank(), number);
      communicator.all_reduce(std::as_writable_bytes(std::span(values)), Element::f32,
                              Reduction::sum, *schedule.algorithm);
      check(values, communicator.size(), number);
    }
    communicator.barrier();
    world.transport.close(20);
  };
  Outcome outcome{.all_closed = true};
  try {
    const SimResult result = run_sim(schedule.cluster, options, body);
    for (int rank = 0; rank < schedule.cluster.ranks; ++rank) {
      const auto end = result.ranks[std::size_t(rank)].end;
      outcome.all_closed = outcome.all_closed && end == SimResult::Rank::End::closed;
      outcome.somebody_failed = outcome.somebody_failed || end == SimResult::Rank::End::failed;
      if (outcome.violation.empty()) outcome.violation = judge(schedule, result, rank);
    }
  } catch (const std::exception& error) {
    outcome.violation = error.what();  // a deadlock among them
  }
  return outcome;
}

// Runs schedules [first, first + count); says how many ended in which way.
void expect_no_violation(std::uint64_t first, int count) {
  int closed = 0, failed = 0, violations = 0;
  for (int i = 0; i < count && violations < 5; ++i) {
    const Schedule schedule = make_schedule(first + std::uint64_t(i));
    const Outcome outcome = run_schedule(schedule);
    closed += outcome.all_closed ? 1 : 0;
    failed += outcome.somebody_failed ? 1 : 0;
    if (outcome.violation.empty()) continue;
    ++violations;
    ADD_FAILURE() << schedule.text() << ": " << outcome.violation;
  }
  // Faults that strike nobody, or everybody at once, would test nothing.
  EXPECT_GT(closed, count / 20);
  EXPECT_GT(failed, count / 20);
}

TEST(FaultSchedules, AFewHundred) { expect_no_violation(1, 300); }
TEST(FaultSchedules, TenThousandSlow) { expect_no_violation(1'000'000, 10'000); }

// A plain ring with a bug.
enum class Bug { none, forgets_a_chunk, swallows_a_loss, waits_for_the_wrong_rank };

template <Bug bug>
void broken_ring(const Operation& operation, std::span<std::byte> buffer) {
  const int n = operation.size(), i = operation.index();
  const auto chunk = [&](int number) {
    const Range range = part_of(buffer.size() / operation.width(), n, ((number % n) + n) % n);
    return buffer.subspan(range.begin * operation.width(), range.count * operation.width());
  };
  for (int step = 0; step < 2 * (n - 1); ++step) {
    const bool adds = step < n - 1;
    const bool astray = bug == Bug::waits_for_the_wrong_rank && step == n - 1 && i == 0;
    const std::span<std::byte> target = chunk(i - step - 2);
    std::vector<std::byte> room(target.size());
    Flight sends(operation, operation.peer((i + 1) % n));
    Flight receives(operation, operation.peer((i + (astray && n > 2 ? 1 : n - 1)) % n));
    receives.recv(adds ? std::span(room) : target);
    sends.send(chunk(i - step - 1));
    try {
      receives.finish_oldest();
    } catch (const PeerLost&) {
      if (bug != Bug::swallows_a_loss) throw;
    }
    const bool forgets = bug == Bug::forgets_a_chunk && step == n - 2 && i == n - 1;
    if (adds && !forgets) operation.add(target, room);
    try {
      sends.finish_oldest();
    } catch (const PeerLost&) {
      if (bug != Bug::swallows_a_loss) throw;
    }
  }
}

int violations(const Algorithm& algorithm, int schedules) {
  int found = 0;
  for (int i = 0; i < schedules; ++i)
    found +=
        run_schedule(make_schedule(std::uint64_t(i) + 1, &algorithm)).violation.empty() ? 0 : 1;
  return found;
}

TEST(FaultSchedules, FindBrokenRings) {
  constexpr int kSchedules = 60;
  EXPECT_EQ(violations({"sound", broken_ring<Bug::none>, ""}, kSchedules), 0);
  EXPECT_GT(violations({"forgets", broken_ring<Bug::forgets_a_chunk>, ""}, kSchedules), 0);
  EXPECT_GT(violations({"swallows", broken_ring<Bug::swallows_a_loss>, ""}, kSchedules), 0);
  EXPECT_GT(violations({"astray", broken_ring<Bug::waits_for_the_wrong_rank>, ""}, kSchedules), 0);
}

}  // namespace
}  // namespace convoy
