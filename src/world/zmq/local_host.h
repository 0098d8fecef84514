// The ranks of the own host, by shared memory, as a part of a transport that reaches other hosts by
// a Mesh: both put what comes into one Inbox. The owner sleeps in shared memory; a thread wakes it
// there when the Mesh has something.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "world/inbox.h"
#include "world/shm/host_memory.h"
#include "world/shm/links.h"
#include "world/shm/neighbours.h"
#include "world/zmq/mesh.h"

namespace convoy {

class LocalHost {
 public:
  // Enters the segment behind job.segment_fd and waits for the others there; throws TransportError.
  LocalHost(const Job& job, Inbox& inbox, Doorbell& bell, Mesh& mesh, double timeout_s);
  ~LocalHost();

  bool has(int rank) const { return place_of_[rank] >= 0; }  // the own rank is one of them
  Ticket send(int to, Tag tag, std::span<const std::byte> bytes) {
    return links_.send(place_of_[to], tag, bytes);
  }
  bool cancel(Ticket ticket) { return links_.cancel(ticket); }
  bool progress(bool thorough) { return links_.progress(thorough); }
  bool flushed() const { return links_.flushed(); }
  void leave() { neighbours_.leave(); }
  shm::SegmentHostMemory& memory() { return memory_; }

  // Calls progress(thorough) and done() until done() says true (true), or the time is over.
  template <typename Progress, typename Done>
  bool wait_until(double timeout_s, Progress progress, Done done);

 private:
  void watch();
  void arm();

  Doorbell& bell_;
  Mesh& mesh_;
  shm::Segment segment_;
  const std::vector<int> ranks_;
  std::vector<int> place_of_;  // by rank; -1: on another host
  shm::Neighbours neighbours_;
  shm::Links links_;
  shm::SegmentHostMemory memory_;
  Doorbell start_;  // the watching thread looks again
  std::atomic<bool> armed_ = false;
  std::atomic<bool> ending_ = false;
  std::thread watcher_;
};

template <typename Progress, typename Done>
bool LocalHost::wait_until(double timeout_s, Progress progress, Done done) {
  using Look = shm::Neighbours::Look;
  const auto look = [&](bool thorough) {
    if (thorough) {
      bell_.rung();
      arm();
    }
    const bool moved = progress(thorough);
    if ((moved || thorough) && done()) return Look::done;
    if (moved) return Look::moved;
    return !thorough || mesh_.may_sleep() ? Look::nothing : Look::moved;
  };
  const double end_s = now_s() + timeout_s;
  for (;;) {
    const double left_s = end_s - now_s();
    const double due_s = mesh_.next_due_s();
    const bool found = neighbours_.wait_until(std::min(left_s, due_s), look);
    mesh_.awake();
    if (found || left_s <= due_s) return found;
  }
}

}  // namespace convoy
