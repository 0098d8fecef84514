#include "world/thread_runtime.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "world/patience.h"

namespace convoy {
namespace {

class ThreadEvent final : public Event {
 public:
  void set() override {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_one();
  }

  bool wait(double timeout_s) override {
    const Patience patience(timeout_s);
    std::unique_lock lock(mutex_);
    while (!set_)
      if (!patience.wait(changed_, lock)) break;
    return std::exchange(set_, false);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

class ThreadTask final : public Task {
 public:
  ThreadTask(const std::string& name, std::function<void()> body)
      : thread_([this, body = std::move(body)] {
          try {
            body();
          } catch (...) {
            error_ = std::current_exception();
          }
        }) {
    pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
  }

  ~ThreadTask() override {
    if (thread_.joinable()) thread_.join();
  }

  void join() override {
    if (thread_.joinable()) thread_.join();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace

double ThreadRuntime::now_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void ThreadRuntime::sleep_s(double seconds) {
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

std::unique_ptr<Task> ThreadRuntime::spawn(std::string name, std::function<void()> body) {
  return std::make_unique<ThreadTask>(name, std::move(body));
}

std::unique_ptr<Event> ThreadRuntime::make_event() { return std::make_unique<ThreadEvent>(); }

}  // namespace convoy
