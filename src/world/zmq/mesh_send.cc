#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "world/zmq/mesh.h"

namespace convoy {
namespace {

constexpr std::size_t kMostEagerBytes = 1 << 20;
constexpr std::size_t kCopiedBytes = 4096;  // shorter payloads are copied rather than lent

}  // namespace

// In ZeroMQ's thread, or in the owner's. `hint` may be gone when the count has reached zero.
void Mesh::release(void*, void* hint) {
  auto* const send = static_cast<Outgoing*>(hint);
  Mesh& mesh = *send->mesh;
  if (send->borrowed.fetch_sub(1) != 1) return;
  ++mesh.returned_;
  if (mesh.asleep_.exchange(false)) mesh.bell_.ring();
}

bool Mesh::send_frame(int to, const Frame& frame, Outgoing* lender) {
  Peer& peer = peers_[to];
  if (!peer.out) return false;
  ZmqMessage head(encode_frame(frame));
  if (!peer.out->send(head, !frame.payload.empty())) {
    suspect(to, "the connection to it ended", false);
    return false;
  }
  if (frame.payload.empty()) return true;
  if (frame.payload.size() <= kCopiedBytes || lender == nullptr) {
    ZmqMessage body(frame.payload);
    return peer.out->send(body, false);
  }
  ++lender->borrowed;
  ZmqMessage body(frame.payload, &Mesh::release, lender);
  return peer.out->send(body, false);
}

Ticket Mesh::send(int to, Tag tag, std::span<const std::byte> bytes) {
  const Ticket ticket = inbox_.matcher().open_send(to, bytes.size());
  if (inbox_.matcher().gone(to)) return ticket;
  Peer& peer = peers_[to];
  CHECK(peer.out.has_value(), "rank {} is no peer of rank {}", to, job_.rank);
  const std::uint64_t id = peer.next_id++;
  auto send = std::make_unique<Outgoing>();
  send->mesh = this;
  send->ticket = ticket;
  send->bytes = bytes;
  Outgoing& added = *peer.sends.emplace(id, std::move(send)).first->second;
  const auto cost = static_cast<std::ptrdiff_t>(bytes.size() + kMessageCost);
  // A message of no bytes has nothing that could wait.
  if (bytes.empty() || (bytes.size() <= kMostEagerBytes && cost <= peer.eager_room)) {
    peer.eager_room -= cost;
    added.sent = std::min(bytes.size(), kSegmentBytes);
    send_frame(to,
               {.kind = FrameKind::eager,
                .tag = tag,
                .id = id,
                .total = bytes.size(),
                .payload = bytes.first(added.sent)},
               &added);
    while (added.sent < bytes.size()) send_segment(to, id, added);
  } else {
    send_frame(to, {.kind = FrameKind::offer, .tag = tag, .id = id, .total = bytes.size()});
  }
  if (added.sent == bytes.size() && added.borrowed == 0) {
    inbox_.matcher().finish(ticket);
    peer.sends.erase(id);
  }
  return ticket;
}

void Mesh::send_segment(int to, std::uint64_t id, Outgoing& send) {
  const std::size_t bytes = std::min(kSegmentBytes, send.bytes.size() - send.sent);
  send_frame(to,
             {.kind = FrameKind::segment,
              .id = id,
              .total = send.bytes.size(),
              .offset = send.sent,
              .payload = send.bytes.subspan(send.sent, bytes)},
             &send);
  send.sent += bytes;
}

// Sends what the window lets through of accepted messages, the first accepted first.
void Mesh::pump(int to) {
  Peer& peer = peers_[to];
  while (peer.out && !peer.accepted.empty()) {
    const std::uint64_t id = peer.accepted.front();
    if (id == paused_) return;
    Outgoing& send = *peer.sends.at(id);
    while (send.sent < send.bytes.size()) {
      const std::size_t bytes = std::min(kSegmentBytes, send.bytes.size() - send.sent);
      if (static_cast<std::ptrdiff_t>(bytes) > peer.stream_room) return;
      peer.stream_room -= static_cast<std::ptrdiff_t>(bytes);
      send_segment(to, id, send);
    }
    peer.accepted.pop_front();
    if (send.borrowed == 0) ++returned_;
  }
}

// Ends the sends whose bytes are all handed over and given back.
void Mesh::reap() {
  const std::uint32_t returned = returned_.load();
  if (returned == returned_seen_) return;
  returned_seen_ = returned;
  for (Peer& peer : peers_)
    std::erase_if(peer.sends, [&](const auto& entry) {
      const Outgoing& send = *entry.second;
      if (send.sent < send.bytes.size() || send.borrowed.load() != 0) return false;
      inbox_.matcher().finish(send.ticket);
      return true;
    });
}

bool Mesh::cancel(Ticket ticket) {
  for (Peer& peer : peers_)
    for (auto& [id, send] : peer.sends)
      if (send->ticket == ticket) {
        inbox_.matcher().give_up(ticket);
        detach(peer, id);
        return true;
      }
  return false;
}

void Mesh::detach(Peer& peer, std::uint64_t id) {
  {
    Outgoing& send = *peer.sends.at(id);
    send.copy = std::make_unique_for_overwrite<std::byte[]>(send.bytes.size());
    if (!send.bytes.empty()) std::memcpy(send.copy.get(), send.bytes.data(), send.bytes.size());
    send.bytes = {send.copy.get(), send.bytes.size()};
  }
  // ZeroMQ comes to an end with what it was given as long as the peer's thread reads, or when the
  // peer is lost. Nothing more is given to it in the meantime.
  paused_ = id;
  for (;;) {
    const auto found = peer.sends.find(id);
    if (found == peer.sends.end() || found->second->borrowed.load() == 0) break;
    if (may_sleep()) zmq_sleep(sockets(), bell_, 0.01);
    awake();
    progress();
  }
  paused_ = 0;
  pump(static_cast<int>(&peer - peers_.data()));
}

bool Mesh::flushed() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
    return !peer.out || peer.said_bye || peer.sends.empty();
  });
}

bool Mesh::may_sleep() {
  asleep_.store(true);
  if (returned_.load() == returned_seen_) return true;
  asleep_.store(false);
  return false;
}

}  // namespace convoy
