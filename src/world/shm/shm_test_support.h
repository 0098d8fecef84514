// Worlds over shared memory for tests: ranks as threads over one mapping, and as processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <thread>
#include <vector>

#include "world/shm/shm_transport.h"
#include "world/thread_runtime.h"
#include "world/world.h"

namespace convoy::shm {

inline constexpr double kLong_s = 60;  // that a test may wait
inline constexpr std::size_t kTestRegionBytes = std::size_t{64} << 20;

inline std::byte pattern(std::uint32_t seed, std::size_t at) {
  return std::byte((seed * 2654435761u + at * 31) >> 7);
}

inline std::vector<std::byte> patterned(std::uint32_t seed, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = pattern(seed, i);
  return data;
}

inline SegmentOptions small_segment(int ranks) {
  return {.ranks = ranks, .region_bytes = kTestRegionBytes};
}

inline void run_rank(Segment& segment, int rank, const RankBody& body) {
  ThreadRuntime runtime;
  const auto transport = make_shm_transport(segment, {.rank = rank, .size = segment.ranks()});
  body({runtime, *transport});
}

// Throws what the first rank that failed threw.
inline void run_threads(const SegmentOptions& options, const RankBody& body) {
  Segment segment = Segment::create(options);
  std::vector<std::exception_ptr> failures(options.ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        run_rank(segment, rank, body);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

// Ranks as children of this process, which see the segment only by its descriptor. Who is still
// there at the end is killed.
class Processes {
 public:
  Processes(Segment& segment, const RankBody& body) {
    std::fflush(nullptr);
    for (int rank = 0; rank < segment.ranks(); ++rank) {
      const pid_t pid = fork();
      if (pid == 0) _exit(child(dup(segment.fd()), rank, segment.ranks(), body));
      pids_.push_back(pid);
    }
  }
  ~Processes() {
    for (const pid_t pid : pids_) {
      if (pid == 0) continue;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  pid_t pid(int rank) const { return pids_[rank]; }
  void signal(int rank, int number) { kill(pids_[rank], number); }

  // How a rank ended, as waitpid tells it: 0 when its body came to its end and no expectation
  // failed.
  int wait(int rank) {
    int status = 0;
    waitpid(pids_[rank], &status, 0);
    pids_[rank] = 0;
    return status;
  }
  // True if all ended well.
  bool wait_all() {
    bool well = true;
    for (std::size_t rank = 0; rank < pids_.size(); ++rank)
      if (wait(static_cast<int>(rank)) != 0) well = false;
    return well;
  }

 private:
  static int child(int fd, int rank, int size, const RankBody& body) {
    const bool failed_before = testing::Test::HasFailure();  // in the parent
    try {
      ThreadRuntime runtime;
      const auto transport = join_shm(fd, {.rank = rank, .size = size});
      body({runtime, *transport});
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      return 1;
    }
    std::fflush(nullptr);
    return !failed_before && testing::Test::HasFailure() ? 1 : 0;
  }

  std::vector<pid_t> pids_;
};

inline void run_processes(const SegmentOptions& options, const RankBody& body) {
  Segment segment = Segment::create(options);
  Processes processes(segment, body);
  EXPECT_TRUE(processes.wait_all());
}

}  // namespace convoy::shm
