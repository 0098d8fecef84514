// The simulated world: every rank is a fiber on a virtual clock, messages take the time that links
// would need, and faults strike at set times. The same seed gives the same run, bit for bit.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "world/world.h"

namespace convoy {

struct Link {
  double latency_s = 0;
  double bytes_per_s = 0;
};

// A message waits for its sender's port, occupies it for bytes / rate, travels for the latency,
// waits for the receiver's port (in the order in which heads arrive there), and occupies that.
// Ranks of one host share the host's port to the network; among themselves each has its own.
struct Cluster {
  int ranks = 1;
  std::vector<int> host_of{};                               // for every rank; empty: a host each
  Link network{.latency_s = 50e-6, .bytes_per_s = 1.25e8};  // between hosts
  Link local{.latency_s = 1e-6, .bytes_per_s = 5e9};        // between ranks of one host
  double memory_bytes_per_s = 1e10;                         // of a host, shared by its ranks
  double barrier_s = 1e-6;                                  // of the ranks of a host
  std::vector<double> speed{};                              // for every rank; empty: 1 each

  struct Port {  // a host whose port to the network differs
    int host;
    double bytes_per_s;
  };
  std::vector<Port> ports{};
  struct Wire {  // two hosts between which the network differs
    int host;
    int peer;
    Link link;
  };
  std::vector<Wire> wires{};
};

struct Fault {
  enum class Kind { kill, pause, cut, slow };
  Kind kind = Kind::kill;
  double at_s = 0;
  double until_s = kForever;  // of all but kill
  int rank = 0;
  int peer = kAnyRank;  // of cut and slow: the other end; kAnyRank: every other
  double factor = 10;   // of slow: how much slower
};

struct SimEventRecord {
  std::uint64_t time_ps = 0;
  int kind = 0;  // 0 a task goes on, 1 a timer rings, 2 a head arrives, 3 a message is there
  std::uint32_t index = 0;  // of the task or the message

  bool operator==(const SimEventRecord&) const = default;
};

struct SimOptions {
  // Of what is possible at one time, 0 takes what came first; another seed decides by chance.
  std::uint64_t seed = 0;
  bool carries_bytes = true;
  std::vector<Fault> faults{};
  double kill_detection_s = 1e-3;
  double heartbeat_deadline_s = 5;
  std::size_t stack_bytes = 64 << 10;
  std::size_t region_bytes = std::size_t{1} << 30;  // of shared memory per rank; taken when touched
  bool rethrow = true;  // what the first rank that failed threw; false: SimResult::ranks tells
  bool keep_trace = false;
};

struct SimResult {
  struct Rank {
    enum class End { closed, returned, failed, killed };
    End end = End::returned;  // returned: without close()
    double at_s = 0;
    std::exception_ptr failure{};
  };
  double seconds = 0;  // until the last rank ended
  std::uint64_t messages = 0;
  std::uint64_t events = 0;
  std::uint64_t trace_hash = 0;
  std::vector<Rank> ranks{};
  std::vector<SimEventRecord> trace{};
};

// Runs `body` on every rank. A deadlock is a TransportError that says who waits for what.
SimResult run_sim(const Cluster& cluster, const SimOptions& options, const RankBody& body);

}  // namespace convoy
