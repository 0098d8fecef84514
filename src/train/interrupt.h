// Ctrl-C and SIGTERM during training.
#pragma once

#include <csignal>

namespace convoy {

// While one lives, the first SIGINT or SIGTERM is only noted, so that the step can finish and be
// saved; the second ends the process at once with exit code 130. At most one lives at a time.
class InterruptGuard {
 public:
  explicit InterruptGuard(bool tells = true);  // the person who asks that it was heard
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool requested() const;

 private:
  struct sigaction old_interrupt_;
  struct sigaction old_terminate_;
};

}  // namespace convoy
