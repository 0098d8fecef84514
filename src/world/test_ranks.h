// For tests: ranks as threads, and as children of this process.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace convoy {

// Runs body(rank) in a thread each; throws what the first rank that failed threw.
inline void run_rank_threads(int size, const std::function<void(int rank)>& body) {
  std::vector<std::exception_ptr> failures(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

// Who is still there at the end is killed.
class RankProcesses {
 public:
  RankProcesses() = default;
  ~RankProcesses() {
    for (const pid_t pid : pids_) {
      if (pid == 0) continue;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  // Starts the next rank, which runs `body` and ends.
  void start(const std::function<void()>& body) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) _exit(run(body));
    pids_.push_back(pid);
  }

  int count() const { return static_cast<int>(pids_.size()); }
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
    for (int rank = 0; rank < count(); ++rank)
      if (wait(rank) != 0) well = false;
    return well;
  }
  // Waits for all; throws if one ended otherwise than well or by SIGKILL.
  void expect_well_or_killed() {
    std::string broken;
    for (int rank = 0; rank < count(); ++rank) {
      const int status = wait(rank);
      const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
      if (status != 0 && !killed) broken += " " + std::to_string(rank);
    }
    if (!broken.empty()) throw std::runtime_error("failed: ranks" + broken);
  }

 private:
  static int run(const std::function<void()>& body) {
    const bool failed_before = testing::Test::HasFailure();  // in the parent
    try {
      body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
    std::fflush(nullptr);
    return !failed_before && testing::Test::HasFailure() ? 1 : 0;
  }

  std::vector<pid_t> pids_;
};

}  // namespace convoy
