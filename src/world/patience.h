// A point on the steady clock up to which somebody waits.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace convoy {

class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  // kForever, and anything beyond a year, never ends.
  explicit Patience(double timeout_s)
      : endless_(!(timeout_s < kYear_s)),
        until_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(endless_ ? 0 : timeout_s))) {}

  bool over() const { return !endless_ && Clock::now() >= until_; }

  double left_s() const {
    if (endless_) return kYear_s;
    return std::chrono::duration<double>(until_ - Clock::now()).count();
  }

  // Waits for a notification, at most until the end. False: the end has come.
  bool wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock) const {
    if (!endless_) return changed.wait_until(lock, until_) == std::cv_status::no_timeout;
    changed.wait(lock);
    return true;
  }

 private:
  static constexpr double kYear_s = 3e7;

  bool endless_;
  Clock::time_point until_;
};

}  // namespace convoy
