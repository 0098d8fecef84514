// The one place that reads the wall clock.
#pragma once

#include <chrono>

namespace convoy {

// Seconds since an arbitrary start; never goes back.
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds since 1970, UTC: for names and records, never for durations.
inline double unix_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace convoy
