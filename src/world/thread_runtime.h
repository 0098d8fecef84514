// The Runtime of the real world: threads and the steady clock.
#pragma once

#include "world/runtime.h"

namespace convoy {

class ThreadRuntime final : public Runtime {
 public:
  double now_s()
      const override;  // since the start of the machine: the same for all processes of it
  void sleep_s(double seconds) override;
  void compute_s(double seconds) override { sleep_s(seconds); }
  std::unique_ptr<Task> spawn(std::string name, std::function<void()> body) override;
  std::unique_ptr<Event> make_event() override;
};

}  // namespace convoy
