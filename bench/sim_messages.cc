// How many messages per second the simulated world carries on one core, through the virtual
// Transport: a bare ring, in which every rank sends to the next and receives from the one before,
// and ring all-reduces by the real collective code.
//
// usage: sim_messages                     64, 1,024 and 8,192 ranks
//        sim_messages RANKS STEPS SEED    a bare ring
//        sim_messages RANKS OPERATIONS    all-reduces
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "sync/communicator.h"
#include "world/sim/sim.h"

namespace {

using namespace convoy;

constexpr std::size_t kBytes = 64 << 10;

void ring(World world, int steps, double compute_s) {
  Transport& transport = world.transport;
  const int next = (transport.rank() + 1) % transport.size();
  const int previous = (transport.rank() + transport.size() - 1) % transport.size();
  // Without content nobody looks at the bytes.
  static std::byte bytes[kBytes];
  for (int step = 0; step < steps; ++step) {
    const Ticket sent = transport.send(next, 1, bytes);
    const Ticket received = transport.recv(previous, 1, bytes);
    transport.wait(received, 60);
    if (compute_s > 0) world.runtime.compute_s(compute_s * (1 + transport.rank() % 7));
    transport.wait(sent, 60);
  }
  transport.close(60);
}

void measure(int ranks, std::uint64_t seed, int repeats, const std::string& what,
             const RankBody& body) {
  const Cluster cluster{.ranks = ranks, .network = {.latency_s = 5e-6, .bytes_per_s = 1.25e10}};
  const SimOptions options{.seed = seed, .carries_bytes = false};
  double best_s = kForever;
  SimResult result;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    result = run_sim(cluster, options, body);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best_s = std::min(best_s, took.count());
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{:>5} ranks, seed {}, {:<22}: {:5.2f} million messages/s, {:4.2f} events per message, "
      "{:6.2f} "
      "s, at most {} MiB, trace {:016x}\n",
      ranks, seed, what, static_cast<double>(result.messages) / best_s * 1e-6,
      static_cast<double>(result.events) / static_cast<double>(result.messages), best_s,
      usage.ru_maxrss >> 10, result.trace_hash);
}

void measure_bare(int ranks, int steps, std::uint64_t seed) {
  for (const double compute_s : {0.0, 1e-6})
    measure(ranks, seed, 3, compute_s > 0 ? "bare, with computation" : "bare",
            [&](World world) { ring(world, steps, compute_s); });
}

void measure_all_reduce(int ranks, int operations) {
  // Nobody looks at the content: one buffer serves all.
  static std::vector<std::byte> buffer(std::size_t{64} << 20);
  measure(ranks, 0, ranks > 4096 ? 1 : 3, "ring all-reduce", [&](World world) {
    Communicator communicator(world.runtime, world.transport, {.algorithm = "ring"});
    for (int operation = 0; operation < operations; ++operation)
      communicator.all_reduce(buffer, Element::f32, Reduction::sum);
    world.transport.close(60);
  });
}

}  // namespace

int main(int count, char** arguments) {
  const auto number = [&](int place) { return std::atoi(arguments[place]); };
  if (count == 4) {
    measure_bare(number(1), number(2), number(3));
  } else if (count == 3) {
    measure_all_reduce(number(1), number(2));
  } else {
    for (const int ranks : {64, 1024, 8192})
      for (const int seed : {0, 1}) measure_bare(ranks, 2'000'000 / ranks, seed);
    measure_all_reduce(64, 200);
    measure_all_reduce(1024, 1);
    measure_all_reduce(8192, 1);
  }
  return 0;
}
