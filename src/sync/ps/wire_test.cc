// Servers that are sent gradients in a lossy wire format: sums, descent, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"
#include "sync/ps/client.h"
#include "sync/ps/server.h"
#include "sync/wire_format.h"
#include "world/sim/sim.h"

namespace convoy {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kSize = 3000;

// A number in [-1, 1) that depends on all of its arguments.
float scatter(std::size_t place, int rank) {
  std::uint64_t bits = (place * 64 + std::size_t(rank) + 1) * 0x9e3779b97f4a7c15;
  bits ^= bits >> 29;
  bits *= 0xbf58476d1ce4e5b9;
  return float(std::int32_t(bits >> 32)) * 0x1p-31f;
}

struct Case {
  std::string wire;
  std::string policy = "sync";
  int workers = 3;
  int servers = 2;
  int steps = 1;  // of each worker
  std::string schedule = "constant";
  double rate = 1;
};

ServerJob make_job(const Case& tested) {
  Parameter one, other;
  one.spec.name = "one";
  one.end = 1100;
  other.spec.name = "other";
  other.begin = one.end;
  other.end = kSize;
  const std::vector<Bucket> buckets = {{0, 0, kSize}};
  const int updates = tested.steps * (tested.policy == "sync" ? 1 : tested.workers);
  ServerJob job;
  job.workers = tested.workers;
  job.policy = tested.policy;
  job.schedule = {.kind = tested.schedule, .rate = tested.rate};
  job.updates_per_epoch = updates;
  job.parameters = {one, other};
  job.layout = make_layout(job.parameters, buckets, {.servers = tested.servers});
  job.wire = tested.wire;
  job.course = {.samples = 1, .parts = tested.workers};
  return job;
}

class Worker {
 public:
  Worker(World world, const ServerJob& job)
      : rank(world.transport.rank()),
        job_(job),
        client(world, job),
        code(make_wire_code(job.wire)) {
    if (job.wire == "bf16") client.expect_halves();
  }

  void push_all() {
    for (std::uint32_t i = 0; i < job_.layout.slices.size(); ++i) {
      const ServerSlice& slice = job_.layout.slices[i];
      const auto part = [&](std::vector<float>& arena) {
        return std::span(arena).subspan(slice.begin, slice.count());
      };
      messages[i].resize(code->words(slice.count()));
      code->encode(part(gradient), part(residual), messages[i]);
      push(i);
    }
    wait_all();
  }
  void push(std::uint32_t i) {
    const ServerSlice& slice = job_.layout.slices[i];
    const WorkerHead head{.samples = 1, .mean_over = std::uint32_t(sums ? job_.workers : 1)};
    client.push(i, head, std::as_bytes(std::span(messages[i])),
                std::span(values).subspan(slice.begin, slice.count()));
  }
  void pull_all() {
    for (std::uint32_t i = 0; i < job_.layout.slices.size(); ++i) {
      const ServerSlice& slice = job_.layout.slices[i];
      client.pull(i, std::span(values).subspan(slice.begin, slice.count()));
    }
    wait_all();
  }
  void wait_all() {
    for (std::uint32_t i = 0; i < job_.layout.slices.size(); ++i) client.wait(i);
  }

  const int rank;
  const ServerJob& job_;
  ServerClient client;
  std::unique_ptr<WireCode> code;
  bool sums = true;  // gradients are parts of a mean over all workers
  std::vector<float> values = std::vector<float>(kSize), gradient = values, residual = values;
  std::vector<std::vector<std::uint32_t>> messages{job_.layout.slices.size()};
};

// Returns why a worker was refused.
std::string run(const Case& tested, const std::function<void(Worker&)>& body) {
  const ServerJob job = make_job(tested);
  std::string refusal;
  run_sim({.ranks = tested.workers + tested.servers}, {}, [&](World world) {
    if (world.transport.rank() >= tested.workers) {
      ParameterServer(world, tested.workers).run();
      return world.transport.close(10);
    }
    if (world.transport.rank() == 0)
      for (int server = 0; server < tested.servers; ++server)
        send_setup(world.transport, tested.workers, server, &job, std::vector<float>(kSize), {});
    try {
      Worker worker(world, job);
      body(worker);
      worker.client.leave();
    } catch (const DataError& error) {
      refusal = error.what();
    }
    world.transport.close(10);
  });
  return refusal;
}

class ServersByWire : public ::testing::TestWithParam<std::string> {};

// Each slice is summed as an all-reduce of the same format sums the same range. An all-reduce in
// bf16 rounds its sums, too, and servers do not: there one worker has to do.
TEST_P(ServersByWire, SumsAreThoseOfAllReduce) {
  const bool rounds_sums = GetParam() == "bf16";
  const Case tested{.wire = GetParam(), .workers = rounds_sums ? 1 : 3, .steps = 4};
  std::vector<float> by_servers;
  run(tested, [&](Worker& worker) {
    for (int step = 0; step < tested.steps; ++step) {
      for (std::size_t i = 0; i < kSize; ++i)
        worker.gradient[i] = scatter(i, worker.rank + 8 * step);
      worker.push_all();
    }
    worker.pull_all();
    if (worker.rank == 0) by_servers = worker.values;
  });
  std::vector<float> expected(kSize);
  run_sim({.ranks = tested.workers}, {}, [&](World world) {
    Communicator communicator(world.runtime, world.transport);
    const auto format = make_wire_format(GetParam(), kSize);
    for (int step = 0; step < tested.steps; ++step)
      for (const ServerSlice& slice : make_job(tested).layout.slices) {
        std::vector<float> values(slice.count());
        for (std::size_t i = slice.begin; i < slice.end; ++i)
          values[i - slice.begin] = scatter(i, communicator.index() + 8 * step);
        format->sum(communicator, slice.begin, values);
        if (communicator.index() == 0)
          for (std::size_t i = slice.begin; i < slice.end; ++i)
            expected[i] -= values[i - slice.begin];
      }
    communicator.barrier();
    world.transport.close(10);
  });
  EXPECT_EQ(by_servers, expected);
}

// Every worker pulls towards a point of its own, with curvatures from 0.05 to 1; at the minimum no
// worker's own gradient is zero.
TEST_P(ServersByWire, DescentConvergesOnAQuadratic) {
  for (const char* policy : {"sync", "async", "dc"}) {
    const bool sums = std::string(policy) == "sync";
    const Case tested{.wire = GetParam(),
                      .policy = policy,
                      .steps = 1500,
                      .schedule = "cosine",
                      .rate = sums ? 0.2 : 0.2 / 3};
    double distance = 0, far = 0;
    run(tested, [&](Worker& worker) {
      worker.sums = sums;
      for (int step = 0; step < tested.steps; ++step) {
        for (std::size_t i = 0; i < kSize; ++i)
          worker.gradient[i] = (0.525f + 0.475f * scatter(i, 7)) *
                               (worker.values[i] - 1 - scatter(i, worker.rank)) /
                               (sums ? float(tested.workers) : 1.0f);
        worker.push_all();
      }
      worker.pull_all();
      if (worker.rank != 0) return;
      for (std::size_t i = 0; i < kSize; ++i) {
        const double goal =
            1 + (double(scatter(i, 0)) + double(scatter(i, 1)) + double(scatter(i, 2))) / 3;
        distance += std::pow(double(worker.values[i]) - goal, 2);
        far += goal * goal;
      }
    });
    EXPECT_LT(std::sqrt(distance / far), 0.05) << policy;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ServersByWire, ::testing::Values("bf16", "topk:0.05", "1bit"),
                         [](const auto& tested) {
                           return tested.param.substr(0, tested.param.find(':'));
                         });

TEST(ServersByWire, RefuseMessagesThatAreNone) {
  const std::uint32_t none = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::quiet_NaN());
  using Words = std::vector<std::uint32_t>;
  struct Row {
    std::string wire;
    std::function<void(Words&)> spoil;
    std::string text;
  };
  const std::vector<Row> rows = {
      {"bf16", [](Words& words) { words.pop_back(); }, "bytes for slice 0, which has"},
      {"bf16", [](Words& words) { words.push_back(0); }, "bytes for slice 0, which has"},
      {"bf16", [](Words& words) { words[3] = 0x7f80; }, "not finite"},
      {"topk:0.1", [](Words& words) { words.resize(4); }, "of 16 bytes for slice 0, which has"},
      {"topk:0.1", [](Words& words) { words[0] = 1 << 20; }, "place 1048576 after 0"},
      {"topk:0.1", [](Words& words) { words[1] = words[0]; }, "place"},
      {"topk:0.1", [&](Words& words) { words.back() = none; }, "not finite"},
      {"1bit", [](Words& words) { words.push_back(0); }, "bytes for slice 0, which has"},
      {"1bit", [&](Words& words) { words[1] = none; }, "not finite"}};
  for (const Row& row : rows)
    for (const char* policy : {"sync", "async"}) {
      bool others = true;
      const std::string refusal =
          run({.wire = row.wire, .policy = policy, .steps = 2}, [&](Worker& worker) {
            worker.gradient.assign(kSize, 0.5f);
            worker.push_all();
            if (worker.rank == 1) {
              row.spoil(worker.messages[0]);
              worker.push(0);
              worker.client.wait(0);
            }
            worker.push_all();
            for (const float value : worker.values) others = others && std::isfinite(value);
          });
      EXPECT_THAT(refusal, HasSubstr(row.text)) << row.wire << policy;
      EXPECT_THAT(refusal, HasSubstr("refuses worker 1")) << row.wire;
      EXPECT_TRUE(others) << row.wire;
    }
}

}  // namespace
}  // namespace convoy
