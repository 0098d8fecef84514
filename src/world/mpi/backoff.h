// How a rank of MPI waits.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace convoy {

// Waiting for something that only calls into MPI bring about: first a spin, then ever longer sleeps
// that wake() ends. A sleep is no longer than a fiftieth of what was waited already (or a
// millisecond), so that it delays little, and a long wait costs little.
class Backoff {
 public:
  Backoff(double timeout_s, bool crowded) : crowded_(crowded), end_s_(begin_s_ + timeout_s) {}

  bool is_over() const { return now_s() >= end_s_; }
  double waited_s() const { return now_s() - begin_s_; }

  template <typename Wakened>
  void pass(std::mutex& mutex, std::condition_variable& woken, Wakened wakened) {
    if (!crowded_ && ++rounds_ < kSpinRounds) return;
    if (rounds_ < kYieldRounds + kSpinRounds) {
      ++rounds_;
      std::this_thread::yield();
      return;
    }
    const double left_s = std::max(0.0, end_s_ - now_s());
    std::unique_lock lock(mutex);
    woken.wait_for(lock, std::chrono::duration<double>(std::min(sleep_s_, left_s)), wakened);
    const double longest_s = std::clamp(waited_s() / 50, kShortSleep_s, kLongSleep_s);
    sleep_s_ = std::min(longest_s, sleep_s_ * 1.5);
  }

 private:
  static constexpr int kSpinRounds = 200;
  static constexpr int kYieldRounds = 50;
  static constexpr double kShortSleep_s = 1e-3;
  static constexpr double kLongSleep_s = 10e-3;

  bool crowded_;
  double begin_s_ = now_s();
  double end_s_;
  int rounds_ = 0;
  double sleep_s_ = 20e-6;
};

}  // namespace convoy
