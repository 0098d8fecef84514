// How many messages per second the simulated world carries on one core: every rank sends to the
// next and receives from the one before, through the virtual Transport, as a ring collective does.
//
// usage: sim_messages [RANKS STEPS SEED]   without arguments: 64, 1,024 and 8,192 ranks
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>

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

void measure(int ranks, int steps, std::uint64_t seed, double compute_s) {
  const Cluster cluster{.ranks = ranks, .network = {.latency_s = 5e-6, .bytes_per_s = 1.25e10}};
  const SimOptions options{.seed = seed, .carries_bytes = false};
  double best_s = kForever;
  SimResult result;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    result = run_sim(cluster, options, [&](World world) { ring(world, steps, compute_s); });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best_s = std::min(best_s, took.count());
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{:>6} ranks, {:>6} steps, seed {}, {}: {:7.2f} million messages/s, {:5.2f} events per "
      "message, {:.2f} s, at most {} MiB, trace {:016x}\n",
      ranks, steps, seed, compute_s > 0 ? "compute " : "lockstep",
      static_cast<double>(result.messages) / best_s * 1e-6,
      static_cast<double>(result.events) / static_cast<double>(result.messages), best_s,
      usage.ru_maxrss >> 10, result.trace_hash);
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 4) {
    const int ranks = std::atoi(arguments[1]);
    const int steps = std::atoi(arguments[2]);
    const std::uint64_t seed = std::strtoull(arguments[3], nullptr, 0);
    for (const double compute_s : {0.0, 1e-6}) measure(ranks, steps, seed, compute_s);
    return 0;
  }
  for (const int ranks : {64, 1024, 8192})
    for (const std::uint64_t seed : {0, 1})
      for (const double compute_s : {0.0, 1e-6}) measure(ranks, 2'000'000 / ranks, seed, compute_s);
  return 0;
}
