// The world inside one process: every rank is a thread. The default in tests.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "world/world.h"

namespace convoy {

class InprocHub;

// Breaks things while ranks run. From any task.
class InprocFaults {
 public:
  InprocFaults();
  ~InprocFaults();

  // The rank's present or next call to its transport ends its body, and the others find it lost.
  void kill(int rank);
  // The rank stands still in its next call to the transport. Silent past the heartbeat's deadline,
  // it is lost.
  void pause(int rank);
  void resume(int rank);
  // Nothing passes between the two any more.
  void cut(int rank, int peer);

 private:
  friend void run_inproc(int, const struct InprocOptions&, const RankBody&);
  std::shared_ptr<struct InprocFaultsLink> link_;
};

struct InprocOptions {
  std::vector<int> host_of{};  // for every rank, its host; empty: all share one
  double heartbeat_deadline_s = 5;
  std::size_t region_bytes = std::size_t{1} << 32;  // of shared memory per rank; taken when touched
  InprocFaults* faults = nullptr;
};

// Runs `body` on every rank and returns when all have ended. Throws what the first rank that failed
// threw. A rank whose body ends by an exception, or without close(), looks lost to the others.
void run_inproc(int size, const InprocOptions& options, const RankBody& body);

}  // namespace convoy
