#pragma once

#include "world/runtime.h"
#include "world/sim/scheduler.h"

namespace convoy {

// Time and tasks of one simulated rank: fibers on the virtual clock.
class SimRuntime final : public Runtime {
 public:
  SimRuntime(Scheduler& scheduler, int rank, double speed)
      : scheduler_(scheduler), rank_(rank), speed_(speed) {}

  double now_s() const override { return to_seconds(scheduler_.now()); }
  void sleep_s(double seconds) override;
  void compute_s(double seconds) override { sleep_s(seconds / speed_); }
  std::unique_ptr<Task> spawn(std::string name, std::function<void()> body) override;
  std::unique_ptr<Event> make_event() override;

 private:
  Scheduler& scheduler_;
  int rank_;
  double speed_;
};

}  // namespace convoy
