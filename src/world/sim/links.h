// How long messages take: ports, latencies, and what faults do to them.
#pragma once

#include <unordered_map>
#include <vector>

#include "world/sim/scheduler.h"
#include "world/sim/sim.h"

namespace convoy {

class Links {
 public:
  explicit Links(const Cluster& cluster);

  struct Departure {
    SimTime sent;  // the last byte has left the sender
    SimTime head;  // the first byte arrives; kNever: nothing does
    SimTime tail;  // the last byte can arrive
  };
  Departure depart(SimTime now, int from, int to, std::size_t bytes);
  // A message whose head arrives now is there at this time, which is later for every message that
  // comes to a port.
  SimTime arrive(SimTime now, int from, int to, std::size_t bytes, SimTime tail);

  // From `from` to `until`, the link is so many times slower.
  void slow(int rank, int peer, double factor, SimTime from, SimTime until);
  // In that time heads do not arrive but wait for its end; kNever: they are lost.
  void cut(int rank, int peer, SimTime from, SimTime until);
  // Whether a cut holds back at `now` what one of them told the other at `told`.
  bool holds_back(int rank, int peer, SimTime told, SimTime now) const;

  int host_of(int rank) const { return host_of_[rank]; }

 private:
  struct Port {
    SimTime free = 0;
    double ps_per_byte = 0;
  };
  struct Wire {
    int host, peer;
    double latency_ps, ps_per_byte;
  };
  struct Trouble {
    int rank, peer;
    double factor;  // 0: cut
    SimTime from, until;
    bool joins(int a, int b) const;
  };

  static SimTime duration(std::size_t bytes, double ps_per_byte);
  const Wire* wire(int host, int peer) const;
  void delay(int from, int to, Departure& departure);

  std::vector<int> host_of_;
  std::vector<Port> out_, in_;              // of hosts
  std::vector<Port> local_out_, local_in_;  // of ranks
  double latency_ps_, local_latency_ps_;
  std::vector<Wire> wires_;
  std::vector<Trouble> troubles_;
  std::unordered_map<std::uint64_t, SimTime> last_head_;  // of (from, to), where there are troubles
};

}  // namespace convoy
