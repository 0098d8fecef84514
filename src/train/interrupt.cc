#include "train/interrupt.h"

#include <unistd.h>

#include <string_view>

namespace convoy {
namespace {

volatile std::sig_atomic_t signals = 0;  // a handler has no other place to write to
volatile std::sig_atomic_t silent = 0;

void note(int) {
  constexpr std::string_view kText =
      "\nconvoy: finishing this step and saving; again to quit at once\n";
  signals = signals + 1;
  if (signals > 1) ::_exit(130);
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
