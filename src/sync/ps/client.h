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
#include "sync/ps/message.h"
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
  Traffic traffic{};
};

class ServerClient {
 public:
  // Its task owns the world's transport until leave() or the end: nobody else may use it. The first
  // `workers` ranks are workers. `layout` outlives the client.
  ServerClient(World world, const ServerLayout& layout, int workers);
  // Drops what is under way.
  ~ServerClient();
  ServerClient(const ServerClient&) = delete;
  ServerClient& operator=(const ServerClient&) = delete;

  // Called by one other task. Those that do not wait never block; those that wait throw what went
  // wrong in the meantime: PeerLost for a lost server, DataError for a refusal.

  // Sends a gradient; new values come into `into`. The bytes stay until wait() for the slice;
  // `write` writes them first, once, in the client's task. All gradients of a step are of one
  // generation: that of the oldest weights it was made with.
  void push(std::uint32_t slice, WorkerHead head, std::span<const std::byte> body,
            std::span<float> into, std::function<void()> write = {});
  void pull(std::uint32_t slice, std::span<float> into);
  void wait(std::uint32_t slice);
  // Of the oldest weights that this worker has.
  std::uint32_t generation();

  // From now on answers to pushes are bf16, as the servers' job says. Before the first push.
  void expect_halves() { halves_.resize(slices_.size()); }

  void rest(std::uint32_t epoch);  // no more pushes in this epoch

  // Asks the coordinator; `buffers` go with Ask::arrive. One question at a time.
  void ask(const Ask& ask, std::vector<float> buffers = {});
  // Waits for the answer; merged buffers come with some.
  Answer answer(std::span<float> merged);

  std::string report(int server);  // its statistics as JSON; waits
  void fetch_state(int server, std::size_t arena, std::span<float> shard);  // waits

  // Says good-bye to all servers and gives the transport back; waits.
  void leave();

  // After leave(), or while nothing is under way.
  const ClientStatistics& statistics();

 private:
  struct SliceState {
    bool head = false, values = false;  // still under way
    double started_s = 0;
    double answered_s = 0;
    std::uint32_t generation = 0;
    WorkerHead out;
  };

  void loop();
  void tell(int server, const WorkerHead& head);
  void expect_server_head(int server);
  void expect_values(std::uint32_t slice, std::span<float> into);
  void finish_slice(SliceState& state);
  template <typename Start>
  void perform(const Start& start);
  void wait_until(const std::function<bool()>& reached);
  int rank_of(int server) const { return workers_ + server; }

  Runtime& runtime_;
  const ServerLayout& layout_;
  const int workers_;
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
  std::exception_ptr failure_;
  ClientStatistics statistics_;
  Courier courier_;
  std::unique_ptr<Task> task_;  // last: it uses all of the above
};

}  // namespace convoy
