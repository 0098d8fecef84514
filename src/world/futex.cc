#include "world/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cmath>
#include <ctime>

#include "base/check.h"

namespace convoy {
namespace {

// Kernels before 5.16 cannot wait for several words: there the first word is waited for, and the
// others are looked at this often.
constexpr double kSliceWithoutWaitv_s = 0.002;

timespec to_timespec(double seconds) {
  const double whole = std::floor(seconds);
  return {static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
}

void wait_first(const FutexWatch& watch, double timeout_s) {
  const timespec pause = to_timespec(std::min(timeout_s, kSliceWithoutWaitv_s));
  syscall(SYS_futex, watch.word, FUTEX_WAIT, watch.value, &pause, nullptr, 0);
}

}  // namespace

void futex_wait_any(std::span<const FutexWatch> watches, double timeout_s) {
  CHECK(!watches.empty() && watches.size() <= kMostFutexWatches, "{} futex words", watches.size());
  if (timeout_s <= 0) return;
  std::array<futex_waitv, kMostFutexWatches> list;
  for (std::size_t i = 0; i < watches.size(); ++i) {
    list[i] = {.val = watches[i].value,
               .uaddr = reinterpret_cast<std::uint64_t>(watches[i].word),
               .flags = FUTEX_32,
               .__reserved = 0};
  }
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  timespec end = to_timespec(std::min(timeout_s, 1e6));
  end.tv_sec += now.tv_sec;
  end.tv_nsec += now.tv_nsec;
  if (end.tv_nsec >= 1'000'000'000) {
    end.tv_nsec -= 1'000'000'000;
    ++end.tv_sec;
  }
  if (syscall(SYS_futex_waitv, list.data(), watches.size(), 0, &end, CLOCK_MONOTONIC) < 0 &&
      (errno == ENOSYS || errno == EPERM)) {
    wait_first(watches[0], timeout_s);
  }
}

void futex_wake(const std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace convoy
