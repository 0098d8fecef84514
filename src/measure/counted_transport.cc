#include "measure/counted_transport.h"

namespace convoy {

CountedTransport::CountedTransport(Transport& inner)
    : inner_(inner), peers_(std::make_unique<Peer[]>(std::size_t(inner.size()))) {}

Ticket CountedTransport::send(int to, Tag tag, std::span<const std::byte> bytes) {
  const Ticket ticket = inner_.send(to, tag, bytes);
  Peer& peer = peers_[std::size_t(to)];
  peer.sent_bytes.fetch_add(std::int64_t(bytes.size()), std::memory_order_relaxed);
  peer.sent_messages.fetch_add(1, std::memory_order_relaxed);
  return ticket;
}

Ticket CountedTransport::recv(int from, Tag tag, std::span<std::byte> buffer) {
  const Ticket ticket = inner_.recv(from, tag, buffer);
  receiving_.insert(ticket);
  return ticket;
}

void CountedTransport::cancel(Ticket ticket) {
  receiving_.erase(ticket);
  inner_.cancel(ticket);
}

void CountedTransport::count_received(const Completion& done) {
  if (receiving_.erase(done.ticket) == 0) return;
  Peer& peer = peers_[std::size_t(done.rank)];
  peer.received_bytes.fetch_add(std::int64_t(done.bytes), std::memory_order_relaxed);
  peer.received_messages.fetch_add(1, std::memory_order_relaxed);
}

std::optional<Completion> CountedTransport::await(std::span<const Ticket> tickets, double timeout_s,
                                                  Heed heed) {
  std::optional<Completion> done;
  if (heed == Heed::wake) {
    done = inner_.wait_any(tickets, timeout_s);
  } else {
    try {
      done = inner_.wait(tickets.front(), timeout_s);  // only wait() heeds nothing
    } catch (const DeadlineExceeded&) {
      return std::nullopt;  // the caller throws it again, in its own words
    }
  }
  if (done) count_received(*done);
  return done;
}

void CountedTransport::take(double at_s, Records& records) {
  for (int rank = 0; rank < size(); ++rank) {
    Peer& peer = peers_[std::size_t(rank)];
    const std::int64_t messages = peer.sent_messages.load() + peer.received_messages.load();
    if (messages == peer.told) continue;
    peer.told = messages;
    records.traffic.push_back({.rank = inner_.rank(),
                               .peer = rank,
                               .at_s = at_s,
                               .sent_bytes = peer.sent_bytes.load(),
                               .sent_messages = peer.sent_messages.load(),
                               .received_bytes = peer.received_bytes.load(),
                               .received_messages = peer.received_messages.load()});
  }
}

}  // namespace convoy
