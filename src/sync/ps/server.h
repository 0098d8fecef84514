// A parameter server: keeps a shard of the parameters, takes gradients from workers, moves the
// weights and sends them back, slice by slice, as its policy says. Servers are all alike; each has
// a copy of what the one before it keeps, and takes over should that be lost.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sync/ps/courier.h"
#include "sync/ps/job.h"
#include "sync/ps/message.h"
#include "sync/ps/policy.h"
#include "sync/ps/rooms.h"
#include "sync/ps/server_statistics.h"
#include "sync/ps/shard.h"
#include "sync/ps/shared_bodies.h"
#include "sync/ps/succession.h"
#include "world/world.h"

namespace convoy {

class ParameterServer {
 public:
  // The world's first `workers` ranks are workers, the others servers. Waits for what worker 0 says
  // about the run.
  ParameterServer(World world, int workers);
  ~ParameterServer();

  // Serves until all workers have left, or throws. Does not close the transport.
  void run();

  const ServerStatistics& statistics() const { return statistics_; }

 private:
  struct Push {
    int worker = 0;
    WorkerHead head;
    Room room;  // that keeps the body; null: it lies in the worker's memory until it is answered
    std::span<const std::byte> body;
    double arrived_s = 0;
  };
  // A push is answered in the job's wire format, a pull always exactly.
  enum class Answers { push, exact };
  struct Unanswered {
    int worker;
    double since_s;
    std::uint64_t edition = 0;  // that the answer must have at least
    Answers kind = Answers::push;
  };
  // A slice as it was at some time: values, then what the optimizer keeps of it, then clocks and
  // numbers of all workers.
  struct Copy {
    std::uint64_t edition = 0;  // 0: there is none
    std::int64_t version = 0;
    std::uint32_t generation = 0;
    Room room = {};
    Room halves = {};  // its values rounded to bf16; null: nobody has asked
  };
  struct SliceState {
    std::uint32_t number = 0;
    ServerSlice slice;
    bool active = false;        // kept here; else a copy of what another server keeps
    bool whole = false;         // of a copy: it has come
    std::uint64_t edition = 1;  // counts all changes of values
    std::int64_t version = 0;   // updates
    std::uint32_t generation = 0;
    std::vector<Clock> clocks;           // by worker
    std::vector<std::uint64_t> numbers;  // by worker: of its last push that moved it
    std::vector<Push> held = {};
    std::vector<int> held_by = {};  // their workers
    std::vector<Unanswered> unanswered = {};
    std::vector<Room> sent;  // by worker: what it has, for compensation
    Room halves = {};        // the values rounded to bf16; null: they have moved since
    // On the server that would take over.
    Copy mirrored = {};  // has arrived there
    Copy under_way = {};
    std::vector<Unanswered> waiting = {};  // for a copy to arrive
    std::uint64_t term = 0;                // how often it was taken over
    std::int64_t taken_at = 0;             // its version then,
    std::int64_t known = 0;                // and the lost server's newest that a worker had
  };
  struct Takeover {  // of a lost server's slices
    int server = 0;
    std::vector<int> claims;  // by worker
    std::int64_t gradients = 0;
    bool told = false;
  };
  struct Peer {  // a worker
    bool left = false;
    WorkerHead head;               // the next, while it arrives
    std::deque<WorkerHead> heads;  // of pushes whose body is under way
    struct Body {
      Room room;
      std::size_t bytes = 0;
      bool here = false;
    };
    std::deque<Body> bodies;  // that are expected, in the order of heads
  };

  bool receive_setup();  // false: nothing is left to do
  void expect_head(int worker);
  void expect_body(int worker);
  void take_head(int worker, const WorkerHead& head);
  void match(int worker);
  void take_shared(int worker, const WorkerHead& head);
  void take_push(Push push);
  std::string fault_of(const Push& push) const;  // why it cannot be taken; empty: it can
  void refuse(int worker, const std::string& why);
  bool of_lost_round(const SliceState& state, const Push& push) const;
  std::int64_t staleness_of(const SliceState& state, const Push& push) const;
  void consider(SliceState& state);
  void update_by_all(SliceState& state, std::span<const Push> pushes);
  void update_by(SliceState& state, const Push& push);
  ServerShard::Pace pace_of(const SliceState& state, double factor) const;
  void count_applied(SliceState& state, const Push& push);
  void count_update(SliceState& state, double start_s);
  void answer(SliceState& state, int worker, double since_s, Answers kind = Answers::push);
  void send_values(SliceState& state, const Unanswered& to, Copy* copy);
  std::span<const std::byte> outgoing(SliceState& state, const Unanswered& to, Copy* copy,
                                      Room& room);
  void send_text(int worker, std::shared_ptr<std::string> text);
  void send_state(int worker, const WorkerHead& head);
  void consider_all();
  void lose(int rank);
  void depart(int worker);
  SliceView view(const SliceState& state) const;
  SliceState* find(std::uint32_t slice);  // that is kept here
  ServerShard& shard_of(const SliceState& state) {
    return *shards_[std::size_t(state.slice.server)];
  }

  void expect_order();
  void obey(const Order& order);
  void keep(int server);
  void go_back(SliceState& state, std::uint32_t generation);

  // Of mirrors: see server_mirrors.cc.
  void start_mirrors();
  bool due(const SliceState& state) const;
  void mirror(SliceState& state);
  void expect_mirrored(int server);
  void release(SliceState& state);
  void expect_mirror(int server);
  void take_copy(int server, const MirrorHead& head, std::vector<float>& room);
  bool is_whole(int server) const;
  ServerShard& shard_for(int server);
  void lose_server(int server);
  void find_heir();
  void take_over(int server);
  void take_claim(int worker, const WorkerHead& claim);
  void see_version(SliceState& state, std::int64_t version);
  void tell_accounts();
  void take_leave(int server);
  void leave_servers();
  int rank_of(int server) const { return workers_ + server; }

  World world_;
  const int workers_;
  const int index_;  // among servers
  ServerJob job_;
  std::vector<std::unique_ptr<ServerShard>> shards_;  // by server: its own and copies; null: none
  std::unique_ptr<ConsistencyPolicy> policy_;
  std::vector<char> alive_;
  std::vector<Peer> peers_;         // never moves
  std::vector<SliceState> slices_;  // by number, those of others too
  std::optional<Rooms> rooms_, copy_rooms_;
  std::optional<SharedBodies> shared_;
  std::vector<std::vector<float>> kept_;  // by shard: values to go back to
  Order order_;                           // the next, while it arrives
  std::optional<Succession> succession_;
  int heir_ = -1;  // the server that has copies of what is kept here; -1: none
  bool leaving_ = false;
  std::vector<MirrorHead> mirror_heads_;  // by server: the next, while it arrives
  MirrorAck ack_;                         // the same, of the heir
  std::vector<Takeover> takeovers_;
  ServerStatistics statistics_;
  Courier courier_;  // last: what it has under way points to the above
};

}  // namespace convoy
