#include "world/sim/network.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace convoy {

SimNetwork::SimNetwork(const Cluster& cluster, const SimOptions& options,
                       std::function<void(SimTime, int, std::uint32_t)> trace)
    : links_(cluster),
      scheduler_({.ranks = cluster.ranks,
                  .seed = options.seed,
                  .stack_bytes = options.stack_bytes,
                  .trace = std::move(trace)},
                 *this),
      carries_bytes_(options.carries_bytes),
      faults_(options.faults),
      kill_detection_s_(options.kill_detection_s),
      heartbeat_deadline_s_(options.heartbeat_deadline_s),
      seen_(cluster.ranks),
      listeners_(cluster.ranks) {
  ranks_.reserve(cluster.ranks);
  for (int rank = 0; rank < cluster.ranks; ++rank) ranks_.emplace_back(cluster.ranks);
  for (std::uint32_t index = 0; index < faults_.size(); ++index) {
    const Fault& one = faults_[index];
    const SimTime from = to_sim_time(one.at_s);
    const SimTime until = to_sim_time(one.until_s);
    const SimTime found = from + to_sim_time(heartbeat_deadline_s_);
    if (one.kind == Fault::Kind::slow) links_.slow(one.rank, one.peer, one.factor, from, until);
    if (one.kind == Fault::Kind::cut)
      links_.cut(one.rank, one.peer, from, until > found ? kNever : until);
    if (one.kind == Fault::Kind::kill || one.kind == Fault::Kind::pause)
      scheduler_.at(from, fault, index);
    if ((one.kind == Fault::Kind::pause || one.kind == Fault::Kind::cut) && until > found)
      scheduler_.at(found, silence, index);
  }
}

std::uint32_t SimNetwork::new_message() {
  if (free_ == kNone) {
    messages_.emplace_back();
    if (carries_bytes_) payloads_.emplace_back();
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  return std::exchange(free_, messages_[free_].next);
}

void SimNetwork::drop(std::uint32_t index) {
  constexpr std::size_t kWorthKeeping = 64 << 10;
  if (carries_bytes_ && payloads_[index].capacity() > kWorthKeeping) payloads_[index] = {};
  messages_[index].next = std::exchange(free_, index);
}

Ticket SimNetwork::send(int from, int to, Tag tag, std::span<const std::byte> bytes) {
  scheduler_.obey();
  Rank& rank = ranks_[from];
  if (rank.matcher.gone(to)) [[unlikely]]
    return rank.matcher.open_send(to, bytes.size());
  const Links::Departure leaves = links_.depart(scheduler_.now(), from, to, bytes.size());
  const Ticket ticket = rank.matcher.open_send(to, bytes.size(), leaves.sent);
  rank.last_sent = std::max(rank.last_sent, leaves.sent);
  ++sent_;
  if (leaves.head == kNever) return ticket;
  const std::uint32_t index = new_message();
  messages_[index] = {leaves.sent, leaves.tail, bytes.size(), from, to, tag, kNone};
  if (carries_bytes_) payloads_[index].assign(bytes.begin(), bytes.end());
  ++rank.under_way;
  scheduler_.at(leaves.head, head, index);
  return ticket;
}

TaskId SimNetwork::handle(int kind, std::uint32_t index) {
  switch (kind) {
    case head:
      return arrive_head(index);
    case delivery:
      return deliver(index);
    case departure:
      tell(static_cast<int>(index));
      return kNoTask;
    case fault:
      strike(faults_[index]);
      return kNoTask;
    default:
      fall_silent(faults_[index]);
      return kNoTask;
  }
}

TaskId SimNetwork::arrive_head(std::uint32_t index) {
  Message& message = messages_[index];
  Rank& sender = ranks_[message.from];
  // What had not left the sender when it died is lost with it.
  if (sender.end == End::lost && message.sent > sender.ended) [[unlikely]] {
    if (--sender.under_way == 0)
      scheduler_.at(std::max(scheduler_.now(), sender.tell), departure, message.from);
    drop(index);
    return kNoTask;
  }
  scheduler_.at(
      links_.arrive(scheduler_.now(), message.from, message.to, message.bytes, message.tail),
      delivery, index);
  return kNoTask;
}

TaskId SimNetwork::deliver(std::uint32_t index) {
  const Message message = messages_[index];
  Rank& sender = ranks_[message.from];
  Rank& receiver = ranks_[message.to];
  if (--sender.under_way == 0 && sender.end != End::running) [[unlikely]]
    scheduler_.at(std::max(scheduler_.now(), sender.tell), departure, message.from);
  if (receiver.end != End::running || receiver.matcher.gone(message.from)) [[unlikely]] {
    drop(index);
    return kNoTask;
  }
  const auto ticket = receiver.matcher.arrive(message.from, message.tag, message.bytes, index);
  if (!ticket) return kNoTask;
  hand_over(receiver, *ticket, index);
  if (receiver.waiter == kNoTask) return kNoTask;
  const std::span<const Ticket> awaited = receiver.awaited;
  if (std::find(awaited.begin(), awaited.end(), *ticket) == awaited.end()) return kNoTask;
  return scheduler_.try_run(receiver.waiter);
}

void SimNetwork::hand_over(Rank& rank, Ticket ticket, std::uint32_t index) {
  if (carries_bytes_) {
    const std::span<std::byte> buffer = rank.matcher.buffer(ticket);
    if (!buffer.empty()) std::memcpy(buffer.data(), payloads_[index].data(), buffer.size());
  }
  rank.matcher.finish(ticket);
  drop(index);
}

Ticket SimNetwork::recv(int rank, int from, Tag tag, std::span<std::byte> buffer) {
  scheduler_.obey();
  const Matcher::Posted posted = ranks_[rank].matcher.open_recv(from, tag, buffer);
  if (posted.early) hand_over(ranks_[rank], posted.ticket, *posted.early);
  return posted.ticket;
}

void SimNetwork::rouse(int rank) {
  if (ranks_[rank].waiter != kNoTask) scheduler_.wake(ranks_[rank].waiter);
}

void SimNetwork::wake(int rank) {
  ranks_[rank].woken = true;
  rouse(rank);
}

void SimNetwork::publish(int rank, const Position& position) {
  seen_[rank] = {position, scheduler_.now()};
}

std::optional<Sighting> SimNetwork::last_seen(int viewer, int rank) const {
  if (!seen_[rank]) return std::nullopt;
  if (links_.holds_back(viewer, rank, seen_[rank]->when, scheduler_.now())) return std::nullopt;
  return Sighting{seen_[rank]->position, to_seconds(scheduler_.now() - seen_[rank]->when)};
}

std::string SimNetwork::waits_for(int rank) {
  std::string text;
  for (const Ticket ticket : ranks_[rank].awaited)
    text += (text.empty() ? "" : " or ") + ranks_[rank].matcher.describe(ticket);
  return text.empty() ? "a wake" : text;
}

}  // namespace convoy
