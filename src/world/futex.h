// Sleeping until a 32-bit word in memory changes, within one process or between processes that
// share the memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

namespace convoy {

// A word and the value at which it is worth sleeping.
struct FutexWatch {
  const std::atomic<std::uint32_t>* word;
  std::uint32_t value;
};

// Sleeps while every word has its value, until one of them is woken, at most `timeout_s`. May
// return early for no reason: callers look for themselves. At most kMostFutexWatches.
void futex_wait_any(std::span<const FutexWatch> watches, double timeout_s);
inline constexpr int kMostFutexWatches = 128;  // the kernel's limit

// Wakes all who sleep on the word.
void futex_wake(const std::atomic<std::uint32_t>& word);

}  // namespace convoy
