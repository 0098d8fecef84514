// Where the time of a run went: every second is in exactly one phase, and the phases sum to the
// wall time.
#pragma once

#include <array>
#include <string_view>

#include "world/runtime.h"

namespace convoy {

// wait: for other workers' gradients, where computation could not hide them.
enum class Phase { load, forward, backward, wait, update, evaluate, other };
inline constexpr std::array<std::string_view, 7> kPhaseNames = {
    "load", "forward", "backward", "wait", "update", "evaluate", "other"};

class TimeLedger {
 public:
  // The runtime outlives the ledger; its clock may be a virtual one.
  explicit TimeLedger(const Runtime& runtime)
      : runtime_(&runtime), start_s_(runtime.now_s()), last_s_(start_s_) {}

  // The time since the last call was spent on `phase`.
  void charge(Phase phase) {
    const double now = runtime_->now_s();
    seconds_[std::size_t(phase)] += now - last_s_;
    last_s_ = now;
  }
  double seconds(Phase phase) const { return seconds_[std::size_t(phase)]; }
  double training_s() const {
    return seconds(Phase::load) + seconds(Phase::forward) + seconds(Phase::backward) +
           seconds(Phase::wait) + seconds(Phase::update);
  }
  // What this worker's own part of a step takes, whatever the others do.
  double compute_s() const {
    return seconds(Phase::load) + seconds(Phase::forward) + seconds(Phase::backward) +
           seconds(Phase::update);
  }
  double wall_s() const { return last_s_ - start_s_; }

 private:
  const Runtime* runtime_;
  double start_s_;
  double last_s_;
  std::array<double, kPhaseNames.size()> seconds_{};
};

}  // namespace convoy
