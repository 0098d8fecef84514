// What a process spends its time on: every nanosecond is in exactly one phase.
#pragma once

#include <array>
#include <string_view>

namespace convoy {

// communication: transfers and sums that computation could not hide. wait: for a rank that had not
// come yet.
enum class Phase {
  load,
  forward,
  backward,
  communication,
  wait,
  update,
  checkpoint,
  evaluate,
  other
};
inline constexpr std::array<std::string_view, 9> kPhaseNames = {
    "load",   "forward",    "backward", "communication", "wait",
    "update", "checkpoint", "evaluate", "other"};
inline constexpr std::size_t kPhases = kPhaseNames.size();

}  // namespace convoy
