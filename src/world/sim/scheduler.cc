#include "world/sim/scheduler.h"

#include <bit>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "world/rank_killed.h"

namespace convoy {

Scheduler::Scheduler(const Options& options, Handler& handler)
    : handler_(handler),
      queue_(options.seed),
      trace_(options.trace),
      fibers_(options.stack_bytes, options.ranks),
      ranks_(options.ranks) {}

TaskId Scheduler::start(int rank, std::string name, std::function<void()> body) {
  bury();
  if (free_.empty()) {
    free_.push_back(static_cast<TaskId>(tasks_.size()));
    tasks_.push_back(std::make_unique<TaskState>());
  }
  const TaskId id = free_.back();
  free_.pop_back();
  TaskState& task = *tasks_[id];
  task.deadline = task.armed = kNever;
  task.rank = rank;
  task.place = &ranks_[rank];
  task.ended = task.released = false;
  task.joiner = kNoTask;
  task.name = std::move(name);
  task.body = std::move(body);
  task.error = nullptr;
  task.scheduler = this;
  fibers_.prepare(task.fiber, entry, &task);
  ++live_;
  task.blocked = true;
  wake(id);
  return id;
}

void Scheduler::entry(void* argument) {
  TaskState& task = *static_cast<TaskState*>(argument);
  try {
    if (!task.scheduler->dead(task.rank)) task.body();
  } catch (const RankKilled&) {
  } catch (...) {
    task.error = std::current_exception();
  }
  task.body = nullptr;
  task.scheduler->finish(task);
}

void Scheduler::await_end(TaskId id) {
  while (!tasks_[id]->ended) {
    tasks_[id]->joiner = current_;
    hold(kNever, "the end of a task");
    tasks_[id]->joiner = kNoTask;
  }
}

void Scheduler::finish(TaskState& task) {
  task.ended = true;
  if (task.joiner != kNoTask) wake(task.joiner);
  ended_.push_back(current_);
  current_ = --live_ == 0 ? kNoTask : next();
  fibers_.end_to(fiber_of(current_));
}

// Stacks of tasks that have ended, by now on another stack.
void Scheduler::bury() {
  std::erase_if(ended_, [&](TaskId id) {
    if (id == current_) return false;
    fibers_.recycle(tasks_[id]->fiber);
    if (tasks_[id]->released) free_.push_back(id);
    tasks_[id]->fiber.stack = nullptr;
    return true;
  });
}

std::exception_ptr Scheduler::take_error(TaskId task) {
  return std::exchange(tasks_[task]->error, nullptr);
}

void Scheduler::release(TaskId task) {
  tasks_[task]->released = true;
  tasks_[task]->error = nullptr;
  if (tasks_[task]->fiber.stack == nullptr) free_.push_back(task);
}

void Scheduler::run() {
  std::string stuck;
  bool ending = false;
  while (live_ > 0) {
    current_ = next();
    if (current_ != kNoTask) {
      fibers_.switch_to(main_, fiber_of(current_));
      continue;
    }
    CHECK(!ending, "tasks do not end: {}", deadlock());
    ending = true;
    if (!only_paused()) stuck = deadlock();
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) kill(rank);
  }
  bury();
  if (!stuck.empty()) throw TransportError(stuck);
}

// Are all tasks that are left on ranks which stand still to the end?
bool Scheduler::only_paused() const {
  for (const auto& task : tasks_)
    if (task->blocked && !task->ended && task->place->paused_until != kNever) return false;
  return true;
}

void Scheduler::end_body() {
  if (std::uncaught_exceptions() > 0) throw TransportError("this rank was killed");
  throw RankKilled{};
}

void Scheduler::wake(TaskId id) {
  TaskState& task = *tasks_[id];
  if (!task.blocked || task.queued) return;
  task.queued = true;
  at(now_, resume, id);
}

// A task has at most one timer that counts. One that rings early, because the task has blocked
// anew since, is set again; so waits that end before their deadline leave nothing in the queue.
TaskId Scheduler::ring(TaskId id) {
  TaskState& task = *tasks_[id];
  if (task.armed != now_) return kNoTask;
  task.armed = kNever;
  if (!task.blocked || task.ended) return kNoTask;
  if (task.deadline <= now_) return try_run(id);
  if (task.deadline != kNever) {
    task.armed = task.deadline;
    at(task.deadline, timer, id);
  }
  return kNoTask;
}

// Takes events until a task may run. kNoTask when there are none left.
TaskId Scheduler::next() {
  RadixHeap::Entry entry;
  while (queue_.pop(entry)) {
    now_ = entry.time;
    ++events_;
    const int kind = static_cast<int>(entry.key >> 32);
    const auto index = static_cast<std::uint32_t>(entry.key);
    hash_ = std::rotl((hash_ ^ entry.time) * 0x9e3779b97f4a7c15u, 29) + entry.key;
    if (trace_) [[unlikely]]
      trace_(now_, kind, index);
    TaskId task = kNoTask;
    if (kind == resume) {
      tasks_[index]->queued = false;
      task = try_run(index);
    } else if (kind == timer) {
      task = ring(index);
    } else {
      task = handler_.handle(kind, index);
    }
    if (task != kNoTask) return task;
  }
  return kNoTask;
}

void Scheduler::kill(int rank) {
  ranks_[rank].dead = true;
  for (TaskId id = 0; id < tasks_.size(); ++id)
    if (tasks_[id]->rank == rank && !tasks_[id]->ended) wake(id);
}

void Scheduler::pause(int rank, SimTime until) {
  ranks_[rank].paused_until = std::max(ranks_[rank].paused_until, until);
}

std::string Scheduler::deadlock() const {
  constexpr int kNamed = 8;
  std::string text = fmt::format("deadlock at {} s: ", to_seconds(now_));
  int named = 0;
  for (const auto& one : tasks_) {
    const TaskState& task = *one;
    if (task.ended || !task.blocked) continue;
    if (++named > kNamed) continue;
    text += fmt::format("{}rank {} ({}) waits for {}", named > 1 ? "; " : "", task.rank, task.name,
                        task.why != nullptr ? task.why : handler_.waits_for(task.rank));
  }
  if (named > kNamed) text += fmt::format("; and {} more", named - kNamed);
  return text;
}

}  // namespace convoy
