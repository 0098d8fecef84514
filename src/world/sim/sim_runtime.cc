#include "world/sim/sim_runtime.h"

#include <utility>
#include <vector>

namespace convoy {
namespace {

SimTime after(const Scheduler& scheduler, double seconds) {
  const SimTime length = to_sim_time(seconds);
  return length == kNever ? kNever : scheduler.now() + length;
}

class SimEvent final : public Event {
 public:
  explicit SimEvent(Scheduler& scheduler) : scheduler_(scheduler) {}

  void set() override {
    set_ = true;
    for (const TaskId task : waiting_) scheduler_.wake(task);
  }

  bool wait(double timeout_s) override {
    scheduler_.obey();
    const SimTime deadline = after(scheduler_, timeout_s);
    while (!set_ && scheduler_.now() < deadline) {
      const TaskId self = scheduler_.current();
      waiting_.push_back(self);
      scheduler_.hold(deadline, "an event");
      std::erase(waiting_, self);
      scheduler_.obey();
    }
    return std::exchange(set_, false);
  }

 private:
  Scheduler& scheduler_;
  bool set_ = false;
  std::vector<TaskId> waiting_;
};

class SimTask final : public Task {
 public:
  SimTask(Scheduler& scheduler, int rank, std::string name, std::function<void()> body)
      : scheduler_(scheduler), id_(scheduler.start(rank, std::move(name), std::move(body))) {}

  ~SimTask() override {
    scheduler_.await_end(id_);
    scheduler_.release(id_);
  }

  void join() override {
    scheduler_.await_end(id_);
    scheduler_.obey();
    if (const auto error = scheduler_.take_error(id_)) std::rethrow_exception(error);
  }

 private:
  Scheduler& scheduler_;
  const TaskId id_;
};

}  // namespace

void SimRuntime::sleep_s(double seconds) {
  scheduler_.obey();
  const SimTime until = after(scheduler_, seconds);
  while (scheduler_.now() < until) scheduler_.block(until, "nothing: it sleeps for ever");
}

std::unique_ptr<Task> SimRuntime::spawn(std::string name, std::function<void()> body) {
  scheduler_.obey();
  return std::make_unique<SimTask>(scheduler_, rank_, std::move(name), std::move(body));
}

std::unique_ptr<Event> SimRuntime::make_event() { return std::make_unique<SimEvent>(scheduler_); }

}  // namespace convoy
