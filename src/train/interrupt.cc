#include "train/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <string_view>

namespace convoy {
namespace {

// A handler has no other place to write to, and two may run at the same time, on two threads.
std::atomic<int> signals = 0;
std::atomic<bool> silent = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void note(int) {
  constexpr std::string_view kText =
      "\nconvoy: finishing this step and saving; again to quit at once\n";
  if (signals.fetch_add(1) > 0) ::_exit(130);
  if (!silent) [[maybe_unused]]
    const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
}

}  // namespace

InterruptGuard::InterruptGuard(bool tells) {
  signals = 0;
  silent = !tells;
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &old_interrupt_);
  ::sigaction(SIGTERM, &action, &old_terminate_);
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &old_interrupt_, nullptr);
  ::sigaction(SIGTERM, &old_terminate_, nullptr);
}

bool InterruptGuard::requested() const { return signals > 0; }

}  // namespace convoy
