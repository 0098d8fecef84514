// A thousand random schedules for every policy, with servers and workers that are slow, stop for a
// while or die: no gradient is lost, none counts twice, none is staler than its policy allows, and
// all workers end with the same weights.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/rng.h"
#include "sync/comm_task.h"
#include "sync/ps/client.h"
#include "sync/ps/server.h"
#include "sync/ps/strategy.h"
#include "world/first_ranks.h"
#include "world/sim/sim.h"

namespace convoy {
namespace {

// One parameter of so many numbers in each of several layers. The gradient of worker w for any
// slice is -1 at w and 0 elsewhere, so that with a rate of 1 number w of each slice counts the
// gradients of worker w.
constexpr std::size_t kWidth = 64;

struct Schedule {
  int workers = 1, servers = 1, layers = 1;
  int epochs = 1;
  std::int64_t samples = 1, batch = 1;
  std::string policy;
  std::string wire = "f32";
  Cluster cluster;
  std::vector<Fault> faults;
  std::uint64_t seed = 0;
  // What worker 1 does wrong in its second lease.
  enum class Mischief { none, strange_slice, short_push, long_push, not_finite, protocol };
  Mischief mischief = Mischief::none;
};

struct Result {
  std::vector<std::vector<float>> weights;           // by worker, at its end
  std::vector<std::map<std::uint32_t, int>> pushed;  // by worker: by slice, how often
  std::vector<std::vector<std::int64_t>> trained;    // by worker: leases
  std::vector<ServerStatistics> servers;
  std::vector<char> finished;  // by worker
  EpochSums last{};
  std::string refusal{};  // of worker 1
};

std::vector<Parameter> make_parameters(int layers) {
  std::vector<Parameter> list;
  for (int i = 0; i < layers; ++i) {
    Parameter parameter;
    parameter.spec.name = fmt::format("layer{}.weight", i);
    parameter.begin = std::size_t(i) * kWidth;
    parameter.end = parameter.begin + kWidth;
    list.push_back(parameter);
  }
  return list;
}

ServerJob make_job(const Schedule& schedule) {
  std::vector<Bucket> buckets;
  for (int i = 0; i < schedule.layers; ++i)
    buckets.push_back({i, std::size_t(i) * kWidth, std::size_t(i + 1) * kWidth});
  const std::vector<Parameter> parameters = make_parameters(schedule.layers);
  ServerJob job{.workers = schedule.workers,
                .policy = schedule.policy,
                .optimizer = {},
                .schedule = {.kind = "constant", .rate = 1},
                .updates_per_epoch = 1,
                .epochs = schedule.epochs,
                .updates = 0,
                .layout = make_layout(parameters, buckets, {.servers = schedule.servers}),
                .parameters = parameters,
                .virtual_shards = 0,
                .wire = schedule.wire,
                .buffers = 3,
                .course = {.epochs = schedule.epochs,
                           .samples = schedule.samples,
                           .batch = schedule.batch,
                           .parts = schedule.workers,
                           .test_steps = 2}};
  return job;
}

// What ServerTrainer does, without a network.
class TestWorker {
 public:
  TestWorker(World world, const Schedule& schedule, const ServerJob& job, Result& result)
      : world_(world),
        schedule_(schedule),
        job_(job),
        rank_(world.transport.rank()),
        strange_(job.layout),
        client_(world, strange_, schedule.workers),
        result_(result),
        values_(job.layout.arena),
        gradient_(job.layout.arena),
        code_(make_wire_code(schedule.wire)),
        messages_(job.layout.slices.size()),
        residual_(job.layout.arena),
        rng_(schedule.seed, Purpose::test, 7, std::uint64_t(rank_)) {
    for (std::size_t i = 0; i < gradient_.size(); i += kWidth)
      gradient_[i + std::size_t(rank_)] = -1;
    if (schedule.wire == "bf16") client_.expect_halves();
  }

  void run() {
    Ask done;
    client_.ask({});
    std::vector<float> buffers(job_.buffers);
    for (;;) {
      const Answer answer = client_.answer(buffers);
      if (answer.kind == Answer::train) {
        client_.ask(std::exchange(done, {}));
        train(answer);
        done = {.lease = answer.lease, .samples = answer.mean_over > 0 ? samples_of(answer) : 0};
      } else if (answer.kind == Answer::rest) {
        for (std::uint32_t i = 0; i < slices(); ++i) client_.wait(i);
        client_.rest(answer.epoch_number);
        done.kind = Ask::arrive;
        buffers.assign(job_.buffers, float(rank_ + 1));
        client_.ask(std::exchange(done, {}), buffers);
      } else if (answer.kind == Answer::merged) {
        for (std::uint32_t i = 0; i < slices(); ++i) client_.pull(i, part(values_, i));
        for (std::uint32_t i = 0; i < slices(); ++i) client_.wait(i);
        result_.weights[std::size_t(rank_)] = values_;
        client_.ask({});
      } else if (answer.kind == Answer::evaluate) {
        client_.ask({.lease = answer.lease, .correct = 1, .samples = 1});
      } else if (answer.kind == Answer::epoch) {
        if (rank_ == 0) result_.last = answer.sums;
        client_.ask({});
      } else {
        ASSERT_EQ(answer.kind, Answer::finished) << text_in(answer.text);
        break;
      }
    }
    client_.leave();
    result_.finished[std::size_t(rank_)] = 1;
  }

 private:
  std::uint32_t slices() const { return std::uint32_t(job_.layout.slices.size()); }
  std::int64_t samples_of(const Answer& lease) const {
    return job_.course.part_samples(int(lease.step), int(lease.part));
  }
  std::span<float> part(std::vector<float>& arena, std::uint32_t slice) {
    const ServerSlice& range = job_.layout.slices[slice];
    return std::span(arena).subspan(range.begin, range.count());
  }

  void push(std::uint32_t slice, const WorkerHead& head) {
    const std::span<const float> gradient = part(gradient_, slice);
    if (!code_) return client_.push(slice, head, std::as_bytes(gradient), part(values_, slice));
    std::vector<std::uint32_t>& message = messages_[slice];
    message.resize(code_->words(gradient.size()));
    client_.push(slice, head, std::as_bytes(std::span(message)), part(values_, slice),
                 [this, slice, gradient, &message] {
                   code_->encode(gradient, part(residual_, slice), message);
                 });
  }

  void misbehave() {
    using Mischief = Schedule::Mischief;
    WorkerHead head{.samples = 1, .mean_over = 1};
    std::vector<float> body(kWidth);
    if (schedule_.mischief == Mischief::short_push) body.resize(kWidth / 2);
    if (schedule_.mischief == Mischief::long_push) body.resize(4 * kWidth);
    if (schedule_.mischief == Mischief::not_finite) body[7] = std::nanf("");
    if (schedule_.mischief == Mischief::protocol) head.protocol = 1;
    if (schedule_.mischief == Mischief::strange_slice)
      strange_.slices[0].server = 1 - strange_.slices[0].server;
    for (std::uint32_t i = 0; i < slices(); ++i) client_.wait(i);
    client_.push(0, head, std::as_bytes(std::span(body)), part(values_, 0));
    client_.wait(0);
  }

  void train(const Answer& lease) {
    if (rank_ == 1 && schedule_.mischief != Schedule::Mischief::none &&
        result_.trained[1].size() == 1)
      misbehave();
    result_.trained[std::size_t(rank_)].push_back((std::int64_t(lease.epoch_number) << 40) +
                                                  std::int64_t(lease.step) * job_.course.parts +
                                                  lease.part);
    for (std::uint32_t i = slices(); i-- > 0;) client_.wait(i);
    world_.runtime.compute_s(1e-3 * (0.2 + double(rng_.uniform())));
    const std::uint32_t generation = client_.generation();
    for (std::uint32_t i = 0; i < slices(); ++i) {
      const WorkerHead head{.generation = generation,
                            .epoch = lease.epoch_number,
                            .samples = std::uint32_t(samples_of(lease)),
                            .mean_over = lease.mean_over,
                            .extra = lease.extra};
      push(i, head);
      ++result_.pushed[std::size_t(rank_)][i];
      world_.runtime.compute_s(1e-4 * double(rng_.uniform()));
    }
  }

  World world_;
  const Schedule& schedule_;
  const ServerJob& job_;
  const int rank_;
  ServerLayout strange_;  // the job's, until it misbehaves
  ServerClient client_;
  Result& result_;
  std::vector<float> values_, gradient_;
  std::unique_ptr<WireCode> code_;
  std::vector<std::vector<std::uint32_t>> messages_;
  std::vector<float> residual_;
  Rng rng_;
};

Result run(const Schedule& schedule) {
  const ServerJob job = make_job(schedule);
  const std::size_t workers = std::size_t(schedule.workers);
  Result result{.weights = std::vector<std::vector<float>>(workers),
                .pushed = std::vector<std::map<std::uint32_t, int>>(workers),
                .trained = std::vector<std::vector<std::int64_t>>(workers),
                .servers = std::vector<ServerStatistics>(std::size_t(schedule.servers)),
                .finished = std::vector<char>(workers, 0)};
  const auto body = [&](World world) {
    const int rank = world.transport.rank();
    if (rank >= schedule.workers) {
      ParameterServer server(world, schedule.workers);
      server.run();
      result.servers[std::size_t(rank - schedule.workers)] = server.statistics();
      world.transport.close(10);
      return;
    }
    FirstRanks first(world.transport, schedule.workers);
    CommTask comm({world.runtime, first}, {});
    if (rank == 0)
      comm.run([&](Communicator&) {
        const std::vector<float> values(job.layout.arena);
        for (int server = 0; server < schedule.servers; ++server)
          send_setup(world.transport, schedule.workers, server, &job, values, {});
      });
    try {
      TestWorker(world, schedule, job, result).run();
    } catch (const DataError& error) {
      if (rank != 1) throw;
      result.refusal = error.what();
    }
    comm.close(10);
  };
  run_sim(schedule.cluster,
          {.seed = schedule.seed,
           .faults = schedule.faults,
           .heartbeat_deadline_s = 0.5,
           .stack_bytes = 256 << 10},
          body);
  return result;
}

Schedule random_schedule(const std::string& policy, std::uint64_t seed) {
  Rng rng(seed, Purpose::test);
  const auto below = [&](int bound) { return int(rng.below(std::uint32_t(bound))); };
  Schedule made;
  made.seed = seed + 1;
  made.workers = 2 + below(5);
  made.layers = 1 + below(6);
  made.servers = 1 + below(std::min(3, made.layers));
  made.epochs = 1 + below(2);
  made.batch = made.workers * (1 + below(3)) + below(2);
  made.samples = made.batch * (1 + below(6)) + below(int(made.batch));
  made.policy = policy;
  if (policy == "backup") made.policy = fmt::format("backup:{}", 1 + below(made.workers - 1));
  if (policy == "ssp") made.policy = fmt::format("ssp:{}", 1 + below(3));
  made.cluster.ranks = made.workers + made.servers;
  made.cluster.network = {.latency_s = 1e-6 * (1 + below(2000)),
                          .bytes_per_s = 1e5 * (1 + below(1000))};
  for (int i = 0; i < made.cluster.ranks; ++i)
    made.cluster.speed.push_back(below(4) == 0 ? 0.1 : 1.0);
  for (int faults = below(3); faults > 0; --faults) {
    Fault fault{.at_s = 1e-3 * below(40), .rank = 1 + below(made.workers - 1)};
    const bool dies = below(2) == 0;
    fault.kind = dies ? Fault::Kind::kill : Fault::Kind::pause;
    if (!dies) fault.until_s = fault.at_s + 1e-3 * (1 + below(100));
    made.faults.push_back(fault);
  }
  return made;
}

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
