// Tasks on a virtual clock. A task runs until it blocks; then it takes events off the queue itself
// until one of them lets a task run, and switches to that. So a message that its receiver waits for
// costs one switch, and a wait that ends at once costs none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "world/sim/fiber.h"
#include "world/sim/radix_heap.h"

namespace convoy {

using SimTime = std::uint64_t;  // picoseconds
inline constexpr SimTime kNever = ~SimTime{0};

// Rounds up, so that whoever waits for the rest of a time makes progress. kNever for what lies
// beyond half a year.
inline SimTime to_sim_time(double seconds) {
  if (!(seconds < 1.6e7)) return kNever;
  const double picoseconds = seconds * 1e12;
  const auto whole = static_cast<SimTime>(std::max(0.0, picoseconds));
  return static_cast<double>(whole) < picoseconds ? whole + 1 : whole;
}
inline double to_seconds(SimTime time) { return static_cast<double>(time) * 1e-12; }

using TaskId = std::uint32_t;
inline constexpr TaskId kNoTask = ~TaskId{0};

class Scheduler {
 public:
  // What happens beyond tasks. Called on the stack of whichever task runs the queue: must not
  // block.
  class Handler {
   public:
    virtual ~Handler() = default;
    // Returns a task that may run now by try_run(), or kNoTask.
    virtual TaskId handle(int kind, std::uint32_t index) = 0;
    // What a task that blocks without saying why waits for.
    virtual std::string waits_for(int rank) = 0;
  };

  struct Options {
    int ranks;
    std::uint64_t seed;
    std::size_t stack_bytes;
    std::function<void(SimTime, int kind, std::uint32_t index)> trace;
  };

  static constexpr int kFirstKind = 2;  // of the handler's events; there are 14

  Scheduler(const Options& options, Handler& handler);

  SimTime now() const { return now_; }
  std::uint64_t events() const { return events_; }
  std::uint64_t hash() const { return hash_; }

  // A task, which begins at this time but not before the caller blocks.
  TaskId start(int rank, std::string name, std::function<void()> body);
  // Runs all tasks to their end. Throws TransportError when they wait for each other for ever.
  void run();

  TaskId current() const { return current_; }
  // Holds the current task until another has ended, also one that was killed before it began.
  void await_end(TaskId task);
  std::exception_ptr take_error(TaskId task);
  void release(TaskId task);  // nobody will ask for it any more

  // Holds the current task until wake() or `until`. `why` explains a deadlock.
  void hold(SimTime until, const char* why);
  // The same, and obey() afterwards.
  void block(SimTime until, const char* why = nullptr) {
    hold(until, why);
    obey();
  }
  void wake(TaskId task);       // lets a blocked task run, at this time
  TaskId try_run(TaskId task);  // the same from within handle(), at once
  void at(SimTime time, int kind, std::uint32_t index) {
    queue_.push({time, static_cast<std::uint64_t>(kind) << 32 | index});
  }
  // Throws RankKilled if the current task's rank is dead; TransportError where an exception already
  // unwinds the stack.
  void obey() const {
    if (tasks_[current_]->place->dead) [[unlikely]]
      end_body();
  }

  void kill(int rank);                  // ends all its tasks, at this time
  void pause(int rank, SimTime until);  // its tasks stand still; kNever: to the end
  bool dead(int rank) const { return ranks_[rank].dead; }
  SimTime paused_until(int rank) const { return ranks_[rank].paused_until; }

 private:
  enum Kind : int { resume, timer };

  struct RankState {
    SimTime paused_until = 0;
    bool dead = false;
  };

  // What a switch touches lies in one line of the cache.
  struct alignas(64) TaskState {
    const RankState* place = nullptr;
    SimTime deadline = kNever;
    SimTime armed = kNever;  // when its next timer rings; older ones are void
    const char* why = nullptr;
    int rank = 0;
    bool blocked = false;
    bool queued = false;  // its resume is in the queue
    bool ended = false;
    bool released = false;
    Fiber fiber;
    Scheduler* scheduler = nullptr;
    std::string name;
    TaskId joiner = kNoTask;  // waits for its end
    std::function<void()> body;
    std::exception_ptr error;
  };

  static void entry(void* task);
  [[noreturn]] static void end_body();
  void finish(TaskState& task);
  TaskId next();
  TaskId ring(TaskId task);
  Fiber& fiber_of(TaskId task) { return task == kNoTask ? main_ : tasks_[task]->fiber; }
  std::string deadlock() const;
  bool only_paused() const;
  void bury();

  Handler& handler_;
  RadixHeap queue_;
  SimTime now_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t hash_ = 0;
  std::function<void(SimTime, int, std::uint32_t)> trace_;
  Fibers fibers_;
  Fiber main_;
  std::vector<std::unique_ptr<TaskState>> tasks_;
  std::vector<TaskId> free_;
  std::vector<TaskId> ended_;  // whose stacks may be used again
  std::vector<RankState> ranks_;
  TaskId current_ = kNoTask;
  int live_ = 0;
};

inline void Scheduler::hold(SimTime until, const char* why) {
  const TaskId self = current_;
  TaskState& task = *tasks_[self];
  task.blocked = true;
  task.deadline = until;
  task.why = why;
  if (until < task.armed) {
    task.armed = until;
    at(until, timer, self);
  }
  current_ = next();
  if (current_ != self) fibers_.switch_to(task.fiber, fiber_of(current_));
}

inline TaskId Scheduler::try_run(TaskId id) {
  TaskState& task = *tasks_[id];
  if (!task.blocked || task.queued) return kNoTask;
  if (task.place->paused_until > now_ && !task.place->dead) [[unlikely]] {
    if (task.place->paused_until != kNever) {
      task.queued = true;
      at(task.place->paused_until, resume, id);
    }
    return kNoTask;
  }
  task.blocked = false;
  return id;
}

}  // namespace convoy
