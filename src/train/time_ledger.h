// Where the time of a run went: every second is in exactly one phase, and the phases sum to the
// wall time.
#pragma once

#include <array>
#include <string_view>

#include "base/clock.h"

namespace convoy {

enum class Phase { load, forward, backward, update, evaluate, other };
inline constexpr std::array<std::string_view, 6> kPhaseNames = {"load",   "forward",  "backward",
                                                                "update", "evaluate", "other"};

class TimeLedger {
 public:
  TimeLedger() : start_s_(now_s()), last_s_(start_s_) {}

  // The time since the last call was spent on `phase`.
  void charge(Phase phase) {
    const double now = now_s();
    seconds_[std::size_t(phase)] += now - last_s_;
    last_s_ = now;
  }
  double seconds(Phase phase) const { return seconds_[std::size_t(phase)]; }
  double training_s() const {
    return seconds(Phase::load) + seconds(Phase::forward) + seconds(Phase::backward) +
           seconds(Phase::update);
  }
  double wall_s() const { return last_s_ - start_s_; }

 private:
  double start_s_;
  double last_s_;
  std::array<double, kPhaseNames.size()> seconds_{};
};

}  // namespace convoy
