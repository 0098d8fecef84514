// What the ranks of a simulation share: messages under way, who is there, faults.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "world/matcher.h"
#include "world/sim/links.h"
#include "world/sim/scheduler.h"
#include "world/sim/sim.h"

namespace convoy {

class SimNetwork final : public Scheduler::Handler {
 public:
  SimNetwork(const Cluster& cluster, const SimOptions& options,
             std::function<void(SimTime, int, std::uint32_t)> trace);

  Scheduler& scheduler() { return scheduler_; }
  Links& links() { return links_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  bool carries_bytes() const { return carries_bytes_; }
  std::uint64_t messages() const { return sent_; }

  Ticket send(int from, int to, Tag tag, std::span<const std::byte> bytes);
  Ticket recv(int rank, int from, Tag tag, std::span<std::byte> buffer);
  std::optional<Completion> await(int rank, std::span<const Ticket> tickets, double timeout_s,
                                  bool heed_wake);
  void cancel(int rank, Ticket ticket) { ranks_[rank].matcher.give_up(ticket); }
  void wake(int rank);
  void close(int rank, double timeout_s);
  bool closed(int rank) const { return ranks_[rank].end == End::closed; }

  // The rank's body has ended without close(): the others learn it after `delay_s`.
  void lose(int rank, std::string why);

  // One of `ranks` that is gone as others see it, and why.
  std::optional<std::pair<int, std::string>> missing(std::span<const int> ranks, int own) const;
  // Calls `listener` when that rank is found gone, for waits that are no messages.
  void on_departure(int rank, std::function<void()> listener) {
    listeners_[rank].push_back(std::move(listener));
  }

  void publish(int rank, const Position& position);
  std::optional<Sighting> last_seen(int viewer, int rank) const;

  TaskId handle(int kind, std::uint32_t index) override;
  std::string waits_for(int rank) override;

 private:
  enum Kind : int { head = Scheduler::kFirstKind, delivery, departure, fault, silence };
  enum class End : std::uint8_t { running, closed, lost };
  static constexpr std::uint32_t kNone = ~0u;

  struct Message {
    SimTime sent;
    SimTime tail;
    std::uint64_t bytes;
    std::int32_t from;
    std::int32_t to;
    Tag tag;
    std::uint32_t next;
  };

  struct alignas(64) Rank {
    explicit Rank(int size) : matcher(size) {}
    TaskId waiter = kNoTask;  // blocked in await for `awaited`
    std::span<const Ticket> awaited;
    SimTime last_sent = 0;  // when its last send is done
    bool woken = false;
    End end = End::running;
    bool told = false;  // the others know of its end
    SimTime ended = 0;
    SimTime tell = 0;             // the earliest time at which they do
    std::uint64_t under_way = 0;  // messages from it that have not arrived
    Matcher matcher;
    std::string why;
  };

  struct Seen {
    Position position;
    SimTime when = 0;
  };

  TaskId arrive_head(std::uint32_t index);
  TaskId deliver(std::uint32_t index);
  void hand_over(Rank& rank, Ticket ticket, std::uint32_t index);
  std::uint32_t new_message();
  void drop(std::uint32_t index);
  void end(int rank, End how, SimTime tell);
  void tell(int rank);
  void settle(Rank& rank, int peer);
  void strike(const Fault& one);
  void fall_silent(const Fault& one);
  void sever(int rank, int peer, const std::string& why);
  SimTime finish_sends(Rank& rank, std::span<const Ticket> tickets);
  void rouse(int rank);

  Links links_;
  Scheduler scheduler_;
  std::vector<Rank> ranks_;
  std::vector<Message> messages_;
  std::uint32_t free_ = kNone;
  std::vector<std::vector<std::byte>> payloads_;  // of messages_, if they carry bytes
  bool carries_bytes_;
  std::uint64_t sent_ = 0;
  std::vector<Fault> faults_;
  double kill_detection_s_;
  double heartbeat_deadline_s_;
  std::vector<std::optional<Seen>> seen_;
  std::vector<std::vector<std::function<void()>>> listeners_;  // by rank
};

// Sends are done when their time has come; only a wait that finds one open asks for an event.
// Returns when the first of those that are still open will be done.
inline SimTime SimNetwork::finish_sends(Rank& rank, std::span<const Ticket> tickets) {
  SimTime first = kNever;
  for (const Ticket ticket : tickets) {
    if (!rank.matcher.is_open_send(ticket)) continue;
    const SimTime when = rank.matcher.note_of(ticket);
    if (when <= scheduler_.now())
      rank.matcher.finish(ticket);
    else
      first = std::min(first, when);
  }
  return first;
}

[[gnu::always_inline]] inline std::optional<Completion> SimNetwork::await(
    int number, std::span<const Ticket> tickets, double timeout_s, bool heed_wake) {
  Rank& rank = ranks_[number];
  scheduler_.obey();
  const SimTime timeout = to_sim_time(timeout_s);
  const SimTime deadline = timeout == kNever ? kNever : scheduler_.now() + timeout;
  for (;;) {
    const SimTime send_done = finish_sends(rank, tickets);
    if (const auto done = rank.matcher.take_done(tickets)) return done;
    if (heed_wake && std::exchange(rank.woken, false)) return std::nullopt;
    if (scheduler_.now() >= deadline) return std::nullopt;
    rank.waiter = scheduler_.current();
    rank.awaited = tickets;
    scheduler_.hold(std::min(deadline, send_done), nullptr);
    rank.waiter = kNoTask;
    scheduler_.obey();
  }
}

}  // namespace convoy
