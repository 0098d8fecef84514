// A parameter server: keeps a shard of the parameters, takes gradients from workers, moves the
// weights and sends them back, slice by slice, as its policy says. Server 0 also coordinates.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sync/ps/coordinator.h"
#include "sync/ps/courier.h"
#include "sync/ps/job.h"
#include "sync/ps/policy.h"
#include "sync/ps/server_statistics.h"
#include "sync/ps/shard.h"
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
  // Where a gradient was received, or values wait to be sent. Used again by others when it is free.
  using Room = std::shared_ptr<std::vector<float>>;
  struct Push {
    int worker = 0;
    WorkerHead head;
    Room body;
    std::size_t bytes = 0;
    double arrived_s = 0;
  };
  struct SliceState {
    std::uint32_t number = 0;
    ServerSlice slice;
    std::int64_t version = 0;
    std::vector<Clock> clocks;         // by worker
    std::vector<std::int64_t> pulled;  // by worker: the version that it has
    std::vector<Push> held;
    std::vector<int> held_by;  // their workers
    struct Unanswered {
      int worker;
      double since_s;
    };
    std::vector<Unanswered> unanswered;
    std::vector<Room> sent;  // by worker: what it has, for compensation
    Room halves = {};        // the values rounded to bf16; null: they have moved since
  };
  struct Peer {  // a worker
    bool left = false;
    WorkerHead head;  // the next, while it arrives
    Ask ask;
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
  void take_push(Push push);
  std::string fault_of(const Push& push) const;  // why it cannot be taken; empty: it can
  void refuse(int worker, const std::string& why);
  void consider(SliceState& state);
  void update_by_all(SliceState& state, std::span<const Push> pushes);
  void update_by(SliceState& state, const Push& push);
  ServerShard::Pace pace_of(const SliceState& state, double factor) const;
  void count_update(SliceState& state, double start_s);
  // Of a push in the job's wire format, of a pull always exact.
  enum class Answers { push, exact };
  void answer(SliceState& state, int worker, double waited_since_s, Answers kind = Answers::push);
  std::span<const std::byte> outgoing(SliceState& state, int worker, Answers kind, Room& copy);
  void send_text(int worker, std::shared_ptr<std::string> text);
  void send_state(int worker, std::size_t arena);
  void consider_all();
  void lose(int rank, const std::string& why);
  void depart(int worker);
  SliceView view(const SliceState& state) const;
  SliceState* find(std::uint32_t slice);

  // Of the coordinator.
  void expect_ask(int worker);
  void take_ask(int worker, const Ask& ask);
  void tell_workers();
  void send_order(const Order& order);
  void expect_order();
  void obey(const Order& order);

  Room take_room();

  World world_;
  const int workers_;
  const int index_;  // among servers
  ServerJob job_;
  std::optional<ServerShard> shard_;
  std::unique_ptr<ConsistencyPolicy> policy_;
  std::uint32_t generation_ = 0;
  std::vector<char> alive_;
  std::vector<Peer> peers_;  // never moves
  std::vector<SliceState> slices_;
  std::vector<int> place_of_;  // by slice number: in slices_; -1: another server's
  using Rooms = std::vector<std::unique_ptr<std::vector<float>>>;
  std::shared_ptr<Rooms> free_rooms_ = std::make_shared<Rooms>();
  std::vector<float> kept_;  // values to go back to
  Order order_;              // the next, while it arrives
  std::unique_ptr<Coordinator> coordinator_;
  ServerStatistics statistics_;
  Courier courier_;  // last: what it has under way points to the above
};

}  // namespace convoy
