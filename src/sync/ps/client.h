// A worker's end of the conversation with the servers. A task of its own drives everything that is
// under way; the task that computes pushes gradients as they come and waits for the weights that it
// needs next.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "sync/ps/courier.h"
#include "sync/ps/job.h"
#include "sync/ps/leader.h"
#include "sync/ps/message.h"
#include "sync/ps/policy.h"
#include "sync/ps/shared_bodies.h"
#include "sync/ps/succession.h"
#include "sync/ps/timings.h"
#include "world/world.h"

namespace convoy {

// Worker 0 tells a server what the run is; null: nothing is left to do. In the task that owns the
// transport; blocks. `values` and the arenas of `state` are whole arenas; the server gets its shard
// of each.
void send_setup(Transport& transport, int workers, int server, const ServerJob* job,
                std::span<const float> values, std::span<const NamedArena> state);

struct ClientStatistics {
  Timings push;  // from the first byte of a slice until the server has dealt with it
  Timings pull;  // from there until the new values are here
  int lost_servers = 0;
  std::int64_t lost_updates = 0;  // see Account; of the leader
  std::int64_t lost_gradients = 0;
  Traffic traffic{};
};

class ServerClient {
 public:
  // Its task owns the world's transport until leave() or the end: nobody else may use it. Worker 0
  // leads the run, in that task. `job` outlives the client.
  ServerClient(World world, const ServerJob& job);
  // Drops what is under way.
  ~ServerClient();
  ServerClient(const ServerClient&) = delete;
  ServerClient& operator=(const ServerClient&) = delete;

  // Called by one other task. Those that do not wait never block; those that wait throw what went
  // wrong in the meantime: TransportError for parameters that are lost with a server, DataError for
  // a refusal. What was asked of a server that is lost is asked again of the one that took over.

  // Sends a gradient; new values come into `into`. The bytes stay until wait() for the slice;
  // `write` writes them first, once, in the client's task. All gradients of a step are of one
  // generation: that of the oldest weights it was made with.
  void push(std::uint32_t slice, WorkerHead head, std::span<const std::byte> body,
            std::span<float> into, std::function<void()> write = {});
  void pull(std::uint32_t slice, std::span<float> into);
  void wait(std::uint32_t slice);
  // Of the oldest weights that this worker has.
  std::uint32_t generation();

  // Memory that is shared with servers of this host, as the job says: they read a gradient there
  // instead of being sent it. Empty where there is none.
  std::span<float> shared() const {
    return {reinterpret_cast<float*>(shared_.own().data()), shared_.own().size() / sizeof(float)};
  }

  // From now on answers to pushes are bf16, as the servers' job says. Before the first push.
  void expect_halves() { halves_.resize(slices_.size()); }

  void rest(std::uint32_t epoch);  // no more pushes in this epoch

  // Asks the leader; `buffers` go with Ask::arrive. One question at a time.
  void ask(const Ask& ask, std::vector<float> buffers = {});
  // Waits for the answer; merged buffers come with some.
  Answer answer(std::span<float> merged);

  // Of the leader: waits until every server that took over has told what was lost.
  void settle_accounts();
  // Of the leader: what each worker has measured, see Coordinator; waits.
  std::vector<std::string> figures();
  std::string report(int server);  // its statistics as JSON, nothing of a lost one; waits
  void fetch_state(int server, std::size_t arena, std::span<float> shard);  // waits

  // Says good-bye to all and gives the transport back; waits. Worker 0 waits for the good-byes of
  // all others.
  void leave();

  // Of now; from any task.
  ClientStatistics statistics();

 private:
  struct SliceState {
    bool head = false, values = false;  // still under way
    bool sent = false;                  // and asked for; only of the loop
    double started_s = 0;
    double answered_s = 0;
    std::uint32_t generation = 0;
    Clock clock = 0;            // of the last push
    Clock told = 0;             // the same, sent; only of the loop
    std::int64_t version = 0;   // of the values that are here
    std::uint64_t term = 0;     // see ServerHead
    std::uint64_t applied = 0;  // the number of the last push that moved them
    ServerHead coming;          // the same, of values that come
    WorkerHead out;             // its number is that of the last push
    std::span<const std::byte> body;
    std::span<float> into;
  };

  void loop();
  void tell(int server, const WorkerHead& head);
  void expect_server_head(int server);
  void expect_values(std::uint32_t slice);
  void finish_slice(SliceState& state);
  void send(std::uint32_t slice);
  void lose(int rank, const std::string& why);
  void lose_server(int server, const std::string& why);
  void claim(std::uint32_t slice);
  void expect_account(int server);
  int holder_of(std::uint32_t slice) const {
    return rank_of(succession_.holder(layout_.slices[slice].server));
  }
  template <typename Start>
  void perform(const Start& start);
  void wait_until(const std::function<bool()>& reached);
  int rank_of(int server) const { return workers_ + server; }

  Runtime& runtime_;
  const ServerLayout& layout_;
  const int workers_;
  const bool mirrors_;
  const SharedBodies shared_;
  Succession succession_;          // what follows belongs to the loop
  std::function<void()> request_;  // starts what is under way, again
  bool leaving_ = false;
  std::vector<ServerHead> heads_in_;                // by server
  std::vector<std::vector<std::uint16_t>> halves_;  // by slice: what comes, where it is bf16
  Ask ask_out_;
  Answer answer_in_;
  std::vector<float> buffers_out_;
  std::unique_ptr<Event> changed_;
  std::mutex mutex_;  // guards what follows
  std::vector<SliceState> slices_;
  bool answered_ = false;
  std::uint64_t performed_ = 0;
  std::vector<int> accounts_;  // by server: that are still to come from it
  std::exception_ptr failure_;
  ClientStatistics statistics_;
  Courier courier_;
  std::unique_ptr<Leader> leader_;  // of worker 0
  std::unique_ptr<Task> task_;      // last: it uses all of the above
};

}  // namespace convoy
