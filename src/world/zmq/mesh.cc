#include "world/zmq/mesh.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"

namespace convoy {
namespace {

// A rank that is said to be lost may have sent something that still travels; its connection ends
// when all is there, or never.
constexpr double kGrace_s = 0.2;
constexpr double kAnswer_s = 1;                // the rendezvous has to say why a connection ended
constexpr std::size_t kCreditBytes = 1 << 20;  // credit is given in pieces of this
constexpr std::size_t kMostKeptBytes = 16 << 20;  // of one peer, unread; then it only offers

}  // namespace

bool Mesh::progress() {
  watch_connections();
  bool moved = take_messages();
  if (troubled_ > 0) settle();
  accept_wanted();
  const std::uint32_t before = returned_seen_;
  reap();
  if (std::exchange(starving_, false))
    for (int rank = 0; rank < job_.size; ++rank)
      if (peers_[rank].out) give_credit(rank);
  return moved || returned_seen_ != before;
}

void Mesh::watch_connections() {
  while (const auto event = monitor_.next()) {
    if (event->kind == ZmqMonitor::Kind::refused) strangers_.note();
    if (event->kind != ZmqMonitor::Kind::disconnected) continue;
    const auto peer = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& one) {
      return one.connection == event->connection;
    });
    if (peer == peers_.end()) {
      strangers_.note();
      continue;
    }
    peer->connection = -1;
    peer->cut = true;
    ++troubled_;
  }
}

// Events of connections are read before messages: who is cut off then has nothing more to come when
// no message is left.
bool Mesh::take_messages() {
  bool moved = false;
  while (in_.recv_all(parts_)) {
    moved = true;
    const std::string line(parts_[0].text());
    const auto frame = parts_.size() == 2   ? decode_frame(parts_[1].bytes(), {})
                       : parts_.size() == 3 ? decode_frame(parts_[1].bytes(), parts_[2].bytes())
                                            : std::nullopt;
    const auto known = rank_of_line_.find(line);
    if (known == rank_of_line_.end()) {
      if (frame)
        take_from_caller(line, *frame, parts_[1].connection());
      else
        strangers_.note();
    } else if (frame && peers_[known->second].out) {
      take(known->second, *frame);
    }
  }
  return moved;
}

void Mesh::take(int from, const Frame& frame) {
  Peer& peer = peers_[from];
  switch (frame.kind) {
    case FrameKind::eager:
    case FrameKind::offer:
      return take_begin(from, frame);
    case FrameKind::segment:
      return take_segment(from, frame);
    case FrameKind::accept: {
      const auto send = peer.sends.find(frame.id);
      if (send == peer.sends.end() || send->second->sent != 0) return;
      peer.accepted.push_back(frame.id);
      return pump(from);
    }
    case FrameKind::credit:
      peer.eager_room += static_cast<std::ptrdiff_t>(frame.total);
      peer.stream_room += static_cast<std::ptrdiff_t>(frame.offset);
      return pump(from);
    case FrameKind::bye:
      peer.said_bye = true;
      send_frame(from, {.kind = FrameKind::bye_heard});
      return part(from, std::nullopt);
    case FrameKind::bye_heard:
      peer.heard_bye = true;
      return;
    case FrameKind::hello:
    case FrameKind::challenge:
    case FrameKind::proof:
      return;
  }
}

void Mesh::take_begin(int from, const Frame& frame) {
  Peer& peer = peers_[from];
  const bool eager = frame.kind == FrameKind::eager;
  const Inbox::Arrival arrival = eager ? inbox_.begin(from, frame.tag, frame.total)
                                       : inbox_.announce(from, frame.tag, frame.total);
  if (!eager) offers_[arrival] = {from, frame.id};
  const std::size_t bytes = frame.payload.size();
  if (eager) {
    if (std::byte* to = inbox_.bytes_of(arrival); to != nullptr && bytes > 0)
      std::memcpy(to, frame.payload.data(), bytes);
    peer.owed_eager += bytes + kMessageCost;
  }
  if (eager && bytes == frame.total)
    inbox_.finish(arrival);
  else
    peer.inbound[frame.id] = {arrival, frame.total, bytes, eager};
  give_credit(from);
}

void Mesh::take_segment(int from, const Frame& frame) {
  Peer& peer = peers_[from];
  const auto found = peer.inbound.find(frame.id);
  if (found == peer.inbound.end()) return;
  Inbound& message = found->second;
  // An honest peer sends the segments of a message in order.
  if (frame.total != message.total || frame.offset != message.received) return;
  if (std::byte* to = inbox_.bytes_of(message.arrival))
    std::memcpy(to + frame.offset, frame.payload.data(), frame.payload.size());
  message.received += frame.payload.size();
  (message.eager ? peer.owed_eager : peer.owed_stream) += frame.payload.size();
  if (message.received == message.total) {
    inbox_.finish(message.arrival);
    peer.inbound.erase(found);
  }
  give_credit(from);
}

// A peer whose messages nobody receives gets no more credit for eager ones.
void Mesh::give_credit(int to) {
  Peer& peer = peers_[to];
  const bool full = inbox_.kept_of(to) > kMostKeptBytes;
  starving_ |= full && peer.owed_eager >= kCreditBytes;
  const std::size_t eager = full ? 0 : peer.owed_eager;
  if (eager < kCreditBytes && peer.owed_stream < kCreditBytes) return;
  if (send_frame(to, {.kind = FrameKind::credit, .total = eager, .offset = peer.owed_stream})) {
    peer.owed_eager -= eager;
    peer.owed_stream = 0;
  }
}

void Mesh::accept_wanted() {
  for (const Inbox::Arrival arrival : inbox_.take_wanted()) {
    const auto offer = offers_.find(arrival);
    if (offer == offers_.end()) continue;
    const auto [from, id] = offer->second;
    offers_.erase(offer);
    send_frame(from, {.kind = FrameKind::accept, .id = id});
  }
}

void Mesh::suspect(int rank, const std::string& why, bool rendezvous_knows) {
  Peer& peer = peers_[rank];
  if (!peer.out || peer.confirmed || (peer.suspicion && !rendezvous_knows)) return;
  peer.suspicion = why;
  peer.rendezvous_knows = peer.confirmed = rendezvous_knows;
  peer.suspected_until_s = now_s() + kGrace_s;
  ++troubled_;
}

void Mesh::settle() {
  for (int rank = 0; rank < job_.size; ++rank) {
    Peer& peer = peers_[rank];
    if (!peer.out) continue;
    const bool late = peer.suspicion && now_s() >= peer.suspected_until_s;
    if (!peer.cut && !late) continue;
    if (peer.heard_bye) {  // this rank leaves, and the peer is done with it
      part(rank, std::nullopt);
      continue;
    }
    if (!peer.rendezvous_knows) {
      // A rank that fails says why before it goes, by way of the rendezvous: whose word is on its
      // way, or comes in answer to this.
      if (!peer.suspicion)
        peer.suspicion = fmt::format("its connection ended, or it was silent for {} s",
                                     job_.heartbeat_deadline_s);
      peer.suspected_until_s = now_s() + kAnswer_s;
      peer.rendezvous_knows = true;
      found_lost_.push_back({rank, *peer.suspicion});
    } else if (peer.confirmed || late) {
      part(rank, *peer.suspicion);
    }
  }
  troubled_ = static_cast<int>(std::count_if(peers_.begin(), peers_.end(), [](const Peer& peer) {
    return peer.out && (peer.cut || peer.suspicion);
  }));
}

// The peer is gone: properly, or lost for a reason.
void Mesh::part(int rank, const std::optional<std::string>& why) {
  accept_wanted();  // names of arrivals are used again after this
  Peer& peer = peers_[rank];
  if (!why) peer.out->linger(1);  // the answer to its bye
  peer.out.reset();
  // ZeroMQ lets go of all it was given for this peer, soon.
  for (const auto& [id, send] : peer.sends) {
    const bool returned = send->borrowed.load() == 0;
    while (send->borrowed.load() != 0) zmq_sleep({}, bell_, 0.001);
    // What has left, and what a peer was given that goes properly, is done.
    if (send->sent == send->bytes.size() && (returned || !why))
      inbox_.matcher().finish(send->ticket);
  }
  peer.sends.clear();
  peer.accepted.clear();
  for (const auto& [id, message] : peer.inbound) {
    offers_.erase(message.arrival);
    inbox_.abandon(message.arrival);
  }
  peer.inbound.clear();
  if (why)
    inbox_.matcher().lose(rank, *why);
  else
    inbox_.matcher().leave(rank);
}

double Mesh::next_due_s() const {
  if (troubled_ == 0) return kForever;
  double due_s = kForever;
  for (const Peer& peer : peers_)
    if (peer.out && peer.suspicion) due_s = std::min(due_s, peer.suspected_until_s - now_s());
  return std::max(due_s, 0.0);
}

void Mesh::say_bye() {
  for (int rank = 0; rank < job_.size; ++rank)
    if (peers_[rank].out) send_frame(rank, {.kind = FrameKind::bye});
}

bool Mesh::bye_heard() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return !peer.out || peer.heard_bye; });
}

void Mesh::linger(double seconds) {
  for (Peer& peer : peers_)
    if (peer.out) peer.out->linger(seconds);
}

}  // namespace convoy
