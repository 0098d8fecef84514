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

// A job that was carried out. Its number is the same on all ranks.
struct CommJob {
  std::uint64_t number = 0;
  std::size_t bytes = 0;
  double posted_s = 0, begin_s = 0, end_s = 0;  // by the rank's clock
};

class CommObserver {
 public:
  virtual ~CommObserver() = default;
  virtual void carried_out(const CommJob& job) = 0;  // on the task that communicates
  // On the task that waits; only where there was something to wait for.
  virtual void waited(std::uint64_t number, double begin_s, double end_s) = 0;
};

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
  // `bytes` is for the observer: what is summed.
  std::uint64_t post(Job job, std::size_t bytes = 0);
  void wait(std::uint64_t number);
  bool done(std::uint64_t number) const { return completed_.load() >= number; }
  void run(Job job) { wait(post(std::move(job))); }

  // Sees every job and wait from now on; null: nobody does. While nothing is under way. Outlives
  // the watching.
  void observe(CommObserver* observer) { observer_ = observer; }

  // Leaves the world properly: nothing may be posted afterwards.
  void close(double timeout_s);

 private:
  struct Entry {
    Job job;
    CommJob about;
  };
  void work();
  void carry_out(Entry& entry, bool failed);
  void check() const;  // throws what an operation threw

  World world_;
  const int rank_, size_;
  std::unique_ptr<Event> posted_event_, completed_event_;
  mutable std::mutex mutex_;  // guards what follows
  std::deque<Entry> queue_;
  std::exception_ptr failure_;
  bool ending_ = false;
  std::uint64_t posted_ = 0;  // the poster's alone
  std::atomic<CommObserver*> observer_{nullptr};
  std::atomic<std::uint64_t> completed_{0};
  Communicator communicator_;
  std::unique_ptr<Task> task_;  // last: it uses all of the above
};

}  // namespace convoy
