#include "sync/comm_task.h"

#include <utility>

#include "base/check.h"

namespace convoy {

CommTask::CommTask(World world, const CommunicatorOptions& options)
    : world_(world),
      rank_(world.transport.rank()),
      size_(world.transport.size()),
      posted_event_(world.runtime.make_event()),
      completed_event_(world.runtime.make_event()),
      communicator_(world.runtime, world.transport, options),
      task_(world.runtime.spawn("communication", [this] { work(); })) {}

CommTask::~CommTask() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    queue_.clear();
  }
  posted_event_->set();
  task_.reset();
}

std::uint64_t CommTask::post(Job job, std::size_t bytes) {
  CommJob about{.number = ++posted_, .bytes = bytes};
  if (observer_.load()) about.posted_s = world_.runtime.now_s();
  {
    const std::lock_guard lock(mutex_);
    CHECK(!ending_, "an operation was posted after close()");
    queue_.push_back({std::move(job), about});
  }
  posted_event_->set();
  return posted_;
}

void CommTask::wait(std::uint64_t number) {
  CommObserver* const observer = done(number) ? nullptr : observer_.load();
  const double begin_s = observer ? world_.runtime.now_s() : 0;
  while (!done(number)) {
    check();
    completed_event_->wait(kForever);
  }
  check();
  if (observer) observer->waited(number, begin_s, world_.runtime.now_s());
}

void CommTask::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void CommTask::close(double timeout_s) {
  run([&](Communicator& communicator) { communicator.transport().close(timeout_s); });
  const std::lock_guard lock(mutex_);
  ending_ = true;
}

void CommTask::carry_out(Entry& entry, bool failed) {
  CommObserver* const observer = observer_.load();
  try {
    if (observer) entry.about.begin_s = world_.runtime.now_s();
    if (!failed) entry.job(communicator_);
    if (observer) {
      entry.about.end_s = world_.runtime.now_s();
      observer->carried_out(entry.about);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
}

// After a failure the queue is only emptied: the Communicator is spent.
void CommTask::work() {
  for (;;) {
    Entry entry;
    bool failed = false;
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty() && ending_) return;
      if (!queue_.empty()) {
        entry = std::move(queue_.front());
        queue_.pop_front();
      }
      failed = failure_ != nullptr;
    }
    if (!entry.job) {
      posted_event_->wait(kForever);
      continue;
    }
    carry_out(entry, failed);
    completed_.fetch_add(1);
    completed_event_->set();
  }
}

}  // namespace convoy
