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

std::uint64_t CommTask::post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    CHECK(!ending_, "an operation was posted after close()");
    queue_.push_back(std::move(job));
  }
  posted_event_->set();
  return ++posted_;
}

void CommTask::wait(std::uint64_t number) {
  while (!done(number)) {
    check();
    completed_event_->wait(kForever);
  }
  check();
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

// After a failure the queue is only emptied: the Communicator is spent.
void CommTask::work() {
  for (;;) {
    Job job;
    bool failed = false;
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty() && ending_) return;
      if (!queue_.empty()) {
        job = std::move(queue_.front());
        queue_.pop_front();
      }
      failed = failure_ != nullptr;
    }
    if (!job) {
      posted_event_->wait(kForever);
      continue;
    }
    try {
      if (!failed) job(communicator_);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    completed_.fetch_add(1);
    completed_event_->set();
  }
}

}  // namespace convoy
