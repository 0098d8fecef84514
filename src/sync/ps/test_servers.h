// Training without a network, in the simulated world: what a worker does, gradients that count
// themselves, and schedules of faults. For tests of servers.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "sync/comm_task.h"
#include "sync/ps/client.h"
#include "sync/ps/server.h"
#include "sync/wire_code.h"
#include "world/first_ranks.h"
#include "world/sim/sim.h"

namespace convoy::test_servers {

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
  int replicas = 0;
  std::int64_t snapshot_every = 0;
  bool may_end = false;  // worker 0 may end with Result::failure
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
  std::string failure{};  // of worker 0
  ClientStatistics leader{};
};

inline std::vector<Parameter> make_parameters(int layers) {
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

inline ServerJob make_job(const Schedule& schedule) {
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
                           .test_steps = 2},
                .replicas = schedule.replicas,
                .snapshot_every = schedule.snapshot_every};
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
        strange_(job),
        client_(world, strange_),
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
    if (rank_ == 0) client_.settle_accounts();
    client_.leave();
    if (rank_ == 0) result_.leader = client_.statistics();
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
      strange_.layout.slices[0].server = 1 - strange_.layout.slices[0].server;
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
  ServerJob strange_;  // the job's, until it misbehaves
  ServerClient client_;
  Result& result_;
  std::vector<float> values_, gradient_;
  std::unique_ptr<WireCode> code_;
  std::vector<std::vector<std::uint32_t>> messages_;
  std::vector<float> residual_;
  Rng rng_;
};

inline Result run(const Schedule& schedule) {
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
      if (rank != 1 || schedule.may_end) throw;
      result.refusal = error.what();
    }
    comm.close(10);
  };
  const SimResult simulated = run_sim(schedule.cluster,
                                      {.seed = schedule.seed,
                                       .faults = schedule.faults,
                                       .heartbeat_deadline_s = 0.5,
                                       .stack_bytes = 256 << 10,
                                       .rethrow = !schedule.may_end},
                                      body);
  try {
    if (simulated.ranks[0].failure) std::rethrow_exception(simulated.ranks[0].failure);
  } catch (const std::exception& error) {
    result.failure = error.what();
  }
  return result;
}

inline Schedule random_schedule(const std::string& policy, std::uint64_t seed) {
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

}  // namespace convoy::test_servers
