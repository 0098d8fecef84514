// The task of a worker that owns its transport: it carries out collective operations one after the
// other, in the order in which they were posted, while the worker computes. Every rank posts the
// same operations in the same order.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "sync/communicator.h"
#include "world/world.h"

namespace convoy {

class CommTask {
 public:
  using Job = std::function<void(Communicator&)>;

  CommTask(World world, const CommunicatorOptions& options);
  // Waits for the operation under way, and gives up those behind it.
  ~CommTask();
  CommTask(const CommTask&) = delete;
  CommTask& operator=(const CommTask&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  Runtime& runtime() { return world_.runtime; }

  // One task posts and waits. post() never blocks; the number is for wait(). After an operation
  // failed, wait() throws what it threw, whatever it waits for.
  std::uint64_t post(Job job);
  void wait(std::uint64_t number);
  bool done(std::uint64_t number) const { return completed_.load() >= number; }
  void run(Job job) { wait(post(std::move(job))); }

  // Leaves the world properly: nothing may be posted afterwards.
  void close(double timeout_s);

 private:
  void work();
  void check() const;  // throws what an operation threw

  World world_;
  const int rank_, size_;
  std::unique_ptr<Event> posted_event_, completed_event_;
  mutable std::mutex mutex_;  // guards what follows
  std::deque<Job> queue_;
  std::exception_ptr failure_;
  bool ending_ = false;
  std::uint64_t posted_ = 0;  // the poster's alone
  std::atomic<std::uint64_t> completed_{0};
  Communicator communicator_;
  std::unique_ptr<Task> task_;  // last: it uses all of the above
};

}  // namespace convoy
