// Jobs by ZeroMQ on loopback for tests: ranks as threads, and as processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <deque>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "world/shm/segment.h"
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
  std::vector<std::exception_ptr> failures(options.size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        run_zmq_rank(job.job(rank), body);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

// Ranks as children of this process, started before it has any thread; each gets its Job through a
// pipe. Who is still there at the end is killed.
class ZmqProcesses {
 public:
  ZmqProcesses(int size, const RankBody& body) {
    std::fflush(nullptr);
    for (int rank = 0; rank < size; ++rank) {
      int ends[2];
      if (pipe(ends) != 0) throw TransportError("no pipe");
      const pid_t pid = fork();
      if (pid == 0) {
        close(ends[1]);
        _exit(child(ends[0], body));
      }
      close(ends[0]);
      pids_.push_back(pid);
      pipes_.push_back(ends[1]);
    }
  }
  ~ZmqProcesses() {
    for (const int end : pipes_) close(end);
    for (const pid_t pid : pids_) {
      if (pid == 0) continue;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  ZmqProcesses(const ZmqProcesses&) = delete;
  ZmqProcesses& operator=(const ZmqProcesses&) = delete;

  void start(const TestJob& job) {
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
      const std::string text = job.job(static_cast<int>(rank)).to_json() + "\n";
      ASSERT_EQ(write(pipes_[rank], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
  }
  void signal(int rank, int number) { kill(pids_[rank], number); }
  // As waitpid tells it: 0 when its body came to its end and no expectation failed.
  int wait(int rank) {
    int status = 0;
    waitpid(pids_[rank], &status, 0);
    pids_[rank] = 0;
    return status;
  }

 private:
  static int child(int pipe_end, const RankBody& body) {
    std::string text;
    for (char one = 0; read(pipe_end, &one, 1) == 1 && one != '\n';) text += one;
    close(pipe_end);
    try {
      run_zmq_rank(Job::from_json(text), [&](World world, const RankDie&) { body(world); });
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
    std::fflush(nullptr);
    return testing::Test::HasFailure() ? 1 : 0;
  }

  std::vector<pid_t> pids_;
  std::vector<int> pipes_;
};

}  // namespace convoy
