// How ranks end, properly or by a fault, and how the others learn it.
#include <algorithm>
#include <utility>

#include "world/sim/network.h"

namespace convoy {

void SimNetwork::close(int number, double timeout_s) {
  scheduler_.obey();
  Rank& rank = ranks_[number];
  if (rank.end != End::running) return;
  const SimTime last = rank.last_sent;
  if (last > scheduler_.now() + std::min(to_sim_time(timeout_s), kNever / 2))
    throw DeadlineExceeded(
        fmt::format("rank {}: what it sent needs more than {} s to leave", number, timeout_s));
  if (last > scheduler_.now()) scheduler_.block(last, "its sends to leave");
  end(number, End::closed, scheduler_.now());
}

void SimNetwork::lose(int rank, std::string why) {
  if (ranks_[rank].end != End::running) return;
  ranks_[rank].why = std::move(why);
  end(rank, End::lost, scheduler_.now() + to_sim_time(kill_detection_s_));
}

// The others learn it when everything that the rank has sent has arrived, as after the last byte of
// a connection.
void SimNetwork::end(int number, End how, SimTime when) {
  Rank& rank = ranks_[number];
  rank.end = how;
  rank.ended = scheduler_.now();
  rank.tell = when;
  if (rank.under_way == 0) scheduler_.at(when, departure, number);
}

void SimNetwork::tell(int number) {
  Rank& gone = ranks_[number];
  if (gone.under_way > 0 || gone.told || scheduler_.now() < gone.tell) return;
  gone.told = true;
  for (int other = 0; other < size(); ++other) {
    Rank& rank = ranks_[other];
    if (other == number || rank.end != End::running) continue;
    settle(rank, number);
    if (gone.end == End::lost) {
      rank.matcher.lose(number, gone.why);
      rouse(other);
    } else if (rank.matcher.leave(number)) {
      rouse(other);
    }
  }
  for (const auto& listener : listeners_[number]) listener();
}

// A send that has left is done, whatever happens to its receiver then.
void SimNetwork::settle(Rank& rank, int peer) {
  rank.matcher.finish_sends(peer, [&](SimTime sent) { return sent <= scheduler_.now(); });
}

void SimNetwork::strike(const Fault& one) {
  if (one.kind == Fault::Kind::pause) {
    scheduler_.pause(one.rank, to_sim_time(one.until_s));
    return;
  }
  if (ranks_[one.rank].end != End::running) return;
  lose(one.rank, "it was killed");
  scheduler_.kill(one.rank);
}

// Nothing was heard over some links for too long.
void SimNetwork::fall_silent(const Fault& one) {
  const std::string why = fmt::format("silent for more than {} s", heartbeat_deadline_s_);
  const bool paused = one.kind == Fault::Kind::pause;
  for (int other = 0; other < size(); ++other) {
    if (other == one.rank) continue;
    if (!paused && one.peer != kAnyRank && one.peer != other) continue;
    sever(other, one.rank, why);
    sever(one.rank, other, paused ? "it gave up waiting for a sign of life" : why);
  }
  for (const auto& listener : listeners_[one.rank]) listener();
}

void SimNetwork::sever(int rank, int peer, const std::string& why) {
  if (ranks_[rank].end != End::running || ranks_[peer].end == End::closed) return;
  settle(ranks_[rank], peer);
  ranks_[rank].matcher.lose(peer, why);
  rouse(rank);
}

std::optional<std::pair<int, std::string>> SimNetwork::missing(std::span<const int> ranks,
                                                               int own) const {
  for (const int rank : ranks)
    if (rank != own && ranks_[own].matcher.gone(rank))
      return std::pair{rank, ranks_[own].matcher.reason(rank)};
  return std::nullopt;
}

}  // namespace convoy
