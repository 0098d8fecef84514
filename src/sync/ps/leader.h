// What worker 0 does for the run as a whole, beside its own training: it takes the questions of all
// workers, its own among them, to the coordinator, and brings back the answers; servers get its
// orders. All calls are made in the loop of worker 0's courier.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sync/ps/coordinator.h"
#include "sync/ps/courier.h"
#include "sync/ps/job.h"

namespace convoy {

class Leader {
 public:
  // `courier` outlives it, and is called in its loop.
  Leader(Courier& courier, const ServerJob& job);

  void start();
  void lose_worker(int worker, const std::string& why);
  void lose_server(int server) { serves_[std::size_t(server)] = 0; }  // gets no more orders
  const std::vector<std::string>& figures() const { return coordinator_.figures(); }
  void note(std::string line) { coordinator_.note(std::move(line)); }  // for people
  // Calls `gone` when every other worker has left or is lost.
  void await_all_gone(std::function<void()> gone);

 private:
  void expect_ask(int worker);
  void take_ask(int worker, const Ask& ask);
  void tell();
  void see_who_is_there();

  Courier& courier_;
  const int workers_;
  const std::size_t buffers_;
  Coordinator coordinator_;
  std::vector<Ask> asks_;     // by worker: the next, while it arrives
  std::vector<char> there_;   // by worker
  std::vector<char> serves_;  // by server
  std::function<void()> gone_;
};

}  // namespace convoy
