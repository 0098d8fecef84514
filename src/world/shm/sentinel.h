// Tells the other ranks of a host that this one is dead. A thread that does nothing else holds the
// rank's pulses in its robust list; the kernel walks the list when the thread ends, however it
// ends, and long before the memory of a large process is gone.
#pragma once

#include <linux/futex.h>

#include <atomic>
#include <thread>

#include "world/shm/segment.h"

namespace convoy::shm {

class Sentinel {
 public:
  // The pulses of rank `index` beat when this returns.
  Sentinel(Segment& segment, int index);
  // They stop, without a sign of death.
  ~Sentinel();
  Sentinel(const Sentinel&) = delete;
  Sentinel& operator=(const Sentinel&) = delete;

 private:
  enum class Stage : int { starting, watching, stopping };
  void run();

  Segment& segment_;
  const int index_;
  robust_list_head list_{};
  std::atomic<Stage> stage_{Stage::starting};
  std::thread thread_;
};

// What a watcher reads in a pulse's word.
inline bool pulse_beats(std::uint32_t word) {
  return (word & FUTEX_TID_MASK) != 0 && (word & FUTEX_OWNER_DIED) == 0;
}
inline bool pulse_died(std::uint32_t word) { return (word & FUTEX_OWNER_DIED) != 0; }

}  // namespace convoy::shm
