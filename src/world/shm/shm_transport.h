// Messages between processes of one host, through shared memory.
//
// A rank that waits for something that does not come spins for some microseconds, where there is a
// core for every rank, and then sleeps. A peer that dies is seen within about a millisecond: the
// kernel marks its pulse and wakes those who sleep. A peer that is stopped (SIGSTOP) is not lost:
// there is no heartbeat in shared memory; whoever waits for it runs into the deadline of the wait,
// whose error tells where every rank was last seen.
#pragma once

#include <memory>
#include <vector>

#include "world/shm/segment.h"
#include "world/transport.h"

namespace convoy {

struct ShmOptions {
  int rank = 0;
  int size = 1;                 // of the job
  std::vector<int> ranks = {};  // those of this host, ascending; empty: all
  double timeout_s = 30;        // for the other ranks of the host to come
};

// Enters the segment and waits for the others there; throws TransportError. The segment must
// outlive the transport, and may be shared by ranks that are threads of one process. Only ranks of
// this host can be sent to.
std::unique_ptr<Transport> make_shm_transport(shm::Segment& segment, const ShmOptions& options);

// The same for a process that has inherited the segment (Job::segment_fd), which it keeps.
std::unique_ptr<Transport> join_shm(int segment_fd, const ShmOptions& options);

}  // namespace convoy
