// Jobs by ZeroMQ on loopback for tests: ranks as threads, and as processes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "world/shm/segment.h"
#include "world/test_ranks.h"
#include "world/thread_runtime.h"
#include "world/world.h"
#include "world/zmq/rendezvous.h"

namespace convoy {

struct ZmqTestOptions {
  int size = 2;
  bool encrypt = true;
  double heartbeat_deadline_s = 5;
  int hosts = 0;  // ranks take turns on this many, by shared memory there; 0: all are strangers
};

// What the launcher knows: the rendezvous, and the shared memory of each host.
class TestJob {
 public:
  using OnLost = std::function<void(int, const std::string&)>;

  explicit TestJob(const ZmqTestOptions& options, OnLost on_lost = {})
      : options_(options),
        keys_(make_job_keys()),
        rendezvous_({.job_id = "0123456789abcdef",
                     .size = options.size,
                     .keys = keys_,
                     .on_lost = std::move(on_lost)}) {
    for (int host = 0; host < options.hosts; ++host) {
      const int ranks = (options.size - host + options.hosts - 1) / options.hosts;
      if (ranks > 0)
        segments_.push_back(shm::Segment::create({.ranks = ranks, .region_bytes = 64 << 20}));
    }
  }

  Rendezvous& rendezvous() { return rendezvous_; }
  const JobKeys& keys() const { return keys_; }

  Job job(int rank) const {
    Job job;
    job.id = "0123456789abcdef";
    job.rank = rank;
    job.size = options_.size;
    job.transport = "zmq";
    for (int one = 0; one < options_.size; ++one) {
      const int host = options_.hosts > 0 ? one % options_.hosts : one;
      job.host_of.push_back(host);
      job.hosts.resize(std::max<std::size_t>(job.hosts.size(), host + 1), "loopback");
    }
    if (options_.hosts > 0) job.segment_fd = dup(segments_[rank % options_.hosts].fd());
    job.rendezvous = rendezvous_.endpoint();
    job.keys = keys_;
    job.encrypt = options_.encrypt;
    job.heartbeat_deadline_s = options_.heartbeat_deadline_s;
    return job;
  }

 private:
  ZmqTestOptions options_;
  JobKeys keys_;
  Rendezvous rendezvous_;
  std::vector<shm::Segment> segments_;
};

using RankDie = std::function<void()>;
using MortalBody = std::function<void(World, const RankDie&)>;

struct RankDied {};

// A thread cannot be killed alone: one that dies drops its transport, before its buffers.
inline void run_zmq_rank(const Job& job, const MortalBody& body) {
  ThreadRuntime runtime;
  auto transport = join_zmq(job, 30);
  try {
    body({runtime, *transport}, [&] {
      transport.reset();
      throw RankDied{};
    });
  } catch (const RankDied&) {
  }
}

// Throws what the first rank that failed threw.
inline void run_zmq_threads(const ZmqTestOptions& options, const MortalBody& body) {
  TestJob job(options);
  run_rank_threads(options.size, [&](int rank) { run_zmq_rank(job.job(rank), body); });
}

// Ranks as children of this process, started before it has any thread; each gets its Job through a
// pipe.
class ZmqProcesses : public RankProcesses {
 public:
  ZmqProcesses(int size, const RankBody& body) {
    for (int rank = 0; rank < size; ++rank) {
      int ends[2];
      if (pipe(ends) != 0) throw TransportError("no pipe");
      RankProcesses::start([&] {
        close(ends[1]);
        run_zmq_rank(hear_of_job(ends[0]), [&](World world, const RankDie&) { body(world); });
      });
      close(ends[0]);
      pipes_.push_back(ends[1]);
    }
  }
  ~ZmqProcesses() {
    for (const int end : pipes_) close(end);
  }

  void start(const TestJob& job) {
    for (int rank = 0; rank < count(); ++rank) {
      const std::string text = job.job(rank).to_json() + "\n";
      ASSERT_EQ(write(pipes_[rank], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
  }

 private:
  static Job hear_of_job(int pipe_end) {
    std::string text;
    for (char one = 0; read(pipe_end, &one, 1) == 1 && one != '\n';) text += one;
    close(pipe_end);
    return Job::from_json(text);
  }

  std::vector<int> pipes_;
};

}  // namespace convoy
