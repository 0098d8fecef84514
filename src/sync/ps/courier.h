// Many conversations of one rank at a time: every message that is sent or awaited has something to
// do when it is done, and one loop, in the task that owns the transport, waits for all of them.
//
// Parcels are what travels in bulk. To each rank at most a few are under way; of those that wait,
// the one with the highest priority goes next, so that what is needed first overtakes what was
// ready first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "world/world.h"

namespace convoy {

struct Traffic {
  std::uint64_t messages_in = 0, messages_out = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
};

// Counts while others read.
class TrafficCounter {
 public:
  void in(std::size_t bytes) { count(messages_in_, bytes_in_, bytes); }
  void out(std::size_t bytes) { count(messages_out_, bytes_out_, bytes); }
  Traffic read() const {
    return {.messages_in = messages_in_,
            .messages_out = messages_out_,
            .bytes_in = bytes_in_,
            .bytes_out = bytes_out_};
  }

 private:
  using Counter = std::atomic<std::uint64_t>;
  static void count(Counter& messages, Counter& all_bytes, std::size_t bytes) {
    messages.fetch_add(1, std::memory_order_relaxed);
    all_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }

  Counter messages_in_ = 0, messages_out_ = 0;
  Counter bytes_in_ = 0, bytes_out_ = 0;
};

class Courier {
 public:
  using Done = std::function<void(const Completion&)>;

  // A head and the bytes that belong to it, in this order; both stay until it is done.
  struct Parcel {
    int priority = 0;
    Tag head_tag = 0, body_tag = 0;
    std::span<const std::byte> head, body;
    std::function<void()> started = {};
    std::function<void()> done = {};
  };

  explicit Courier(Transport& transport) : transport_(transport) {}
  ~Courier();
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  // Called in the loop for a rank that is lost, and for one that sent what cannot be received, when
  // nothing is open with it any more. Without them, such things end run() by an exception.
  using Trouble = std::function<void(int rank, const std::string& why)>;
  void on_lost(Trouble handler) { lost_ = std::move(handler); }
  void on_fault(Trouble handler) { fault_ = std::move(handler); }

  // In the loop, or before it runs.
  void send(int to, Tag tag, std::span<const std::byte> bytes, Done done = {});
  void recv(int from, Tag tag, std::span<std::byte> buffer, Done done);
  void send_parcel(int to, Parcel parcel);
  // Gives up what is open with a rank; what is not done never will be.
  void drop(int rank);
  void stop() { stopping_ = true; }  // run() returns when all that was sent is done

  // From any task: `work` is done in the loop.
  void post(std::function<void()> work);

  // The loop. Throws what the work in it throws.
  void run();

  // What goes without being carried, through memory that both sides share.
  void count_out(std::size_t bytes) { traffic_.out(bytes); }
  void count_in(std::size_t bytes) { traffic_.in(bytes); }
  // From any task.
  Traffic traffic() const { return traffic_.read(); }

 private:
  struct Open {
    int peer = 0;
    bool is_send = false;
    Done done;
  };
  struct Lane {
    std::vector<Parcel> waiting;
    int under_way = 0;
  };

  void open(Ticket ticket, Open operation);
  void start_parcels(int to);
  void do_posted();
  void finish(const Completion& completion);
  bool sending() const;
  int faulty_peer();

  Transport& transport_;
  Trouble lost_, fault_;
  std::vector<Ticket> tickets_;
  std::vector<Open> open_;  // beside tickets_
  std::map<int, Lane> lanes_;
  bool stopping_ = false;
  TrafficCounter traffic_;
  std::mutex mutex_;  // guards what follows
  std::deque<std::function<void()>> posted_;
};

}  // namespace convoy
