#include "world/shm/links.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace convoy::shm {
namespace {

// Bytes between two publications: the reader copies one piece while the writer copies the next.
constexpr std::size_t kPiece = 64 << 10;

// Bytes between the end of a message and the next head.
std::size_t padding(std::size_t bytes) { return -bytes % sizeof(MessageHeader); }

}  // namespace

Links::Links(Neighbours& neighbours, std::span<const int> ranks, Inbox& inbox)
    : neighbours_(neighbours), ranks_(ranks.begin(), ranks.end()), inbox_(inbox) {
  CHECK(static_cast<int>(ranks_.size()) == neighbours.count(), "{} ranks in a segment for {}",
        ranks_.size(), neighbours.count());
  Segment& segment = neighbours.segment();
  const int own = neighbours.index();
  for (int peer = 0; peer < neighbours.count(); ++peer) {
    links_.emplace_back(RingWriter(segment.ring(own, peer), segment.ring_bytes(own, peer)),
                        RingReader(segment.ring(peer, own), segment.ring_bytes(peer, own)));
  }
}

Ticket Links::send(int peer, Tag tag, std::span<const std::byte> bytes) {
  Link& link = links_[peer];
  settle(peer);
  const Ticket ticket = inbox_.matcher().open_send(ranks_[peer], bytes.size());
  if (link.gone) return ticket;
  Outgoing message{.ticket = ticket, .tag = tag, .bytes = bytes, .copy = nullptr};
  if (link.queue.empty()) {
    if (put_message(peer, message)) return ticket;
    ++busy_;
  }
  link.queue.push_back(std::move(message));
  put(peer);  // asks for room
  return ticket;
}

// True when all of it is in the ring.
bool Links::put_message(int peer, Outgoing& message) {
  RingWriter& out = links_[peer].out;
  bool fresh = !message.begun;  // its head is not published yet
  if (fresh) {
    if (out.room() < sizeof(MessageHeader) && out.refresh() < sizeof(MessageHeader)) return false;
    const MessageHeader header{message.bytes.size(), message.tag, 0};
    out.write(std::as_bytes(std::span{&header, 1}));
    message.begun = true;
  }
  for (;;) {
    // All counts are multiples of a header's size when published: where the rest of a message fits,
    // its padding does.
    const std::size_t rest = message.bytes.size() - message.sent;
    std::size_t room = out.room();
    if (room < std::min(rest, kPiece)) room = out.refresh();
    const std::size_t piece = std::min({rest, room, kPiece});
    if (piece == 0 && rest != 0 && !fresh) return false;
    fresh = false;
    out.write(message.bytes.subspan(message.sent, piece));
    message.sent += piece;
    if (piece == rest) out.skip(padding(message.bytes.size()));
    out.publish();
    neighbours_.ring(peer);
    if (piece == rest) break;
  }
  inbox_.matcher().finish(message.ticket);
  return true;
}

// Puts what fits; true if anything did.
bool Links::put(int peer) {
  Link& link = links_[peer];
  if (link.queue.empty()) return false;
  bool moved = false;
  while (!link.queue.empty()) {
    Outgoing& first = link.queue.front();
    const std::size_t before = first.sent;
    if (put_message(peer, first)) {
      link.queue.pop_front();
      moved = true;
    } else {
      moved = moved || first.sent != before;
      link.out.want_room(true);
      // Room that came before the reader could see the wish brings no ring.
      if (link.out.refresh() == 0) return moved;
    }
  }
  link.out.want_room(false);
  --busy_;
  return moved;
}

bool Links::cancel(Ticket ticket) {
  for (Link& link : links_) {
    const auto found =
        std::find_if(link.queue.begin(), link.queue.end(),
                     [&](const Outgoing& message) { return message.ticket == ticket; });
    if (found == link.queue.end()) continue;
    if (found->begun) {
      const std::size_t rest = found->bytes.size() - found->sent;
      found->copy = std::make_unique_for_overwrite<std::byte[]>(found->bytes.size());
      std::memcpy(found->copy.get() + found->sent, found->bytes.data() + found->sent, rest);
      found->bytes = {found->copy.get(), found->bytes.size()};
    } else {
      link.queue.erase(found);
      if (link.queue.empty()) {
        link.out.want_room(false);
        --busy_;
      }
    }
    inbox_.matcher().give_up(ticket);
    return true;
  }
  return false;
}

bool Links::progress(bool thorough) {
  bool moved = false;
  for (int peer = 0; peer < neighbours_.count(); ++peer) {
    if (take(peer)) moved = true;
    if (busy_ != 0 && put(peer)) moved = true;
    if (thorough && settle(peer)) moved = true;
  }
  return moved;
}

// Takes all that is there; true if there was anything.
bool Links::take(int peer) {
  Link& link = links_[peer];
  if (link.in.refresh() == 0) return false;
  while (link.in.filled() != 0) take_piece(peer);
  return true;
}

void Links::take_piece(int peer) {
  Link& link = links_[peer];
  RingReader& in = link.in;
  if (!link.incoming) {
    MessageHeader header;
    in.read(std::as_writable_bytes(std::span{&header, 1}));
    link.incoming = {inbox_.begin(ranks_[peer], header.tag, header.bytes), header.bytes, 0};
  }
  Incoming& message = *link.incoming;
  const std::size_t piece = std::min({message.bytes - message.taken, in.filled(), kPiece});
  if (std::byte* to = inbox_.bytes_of(message.arrival)) {
    in.read({to + message.taken, piece});
  } else {
    in.skip(piece);
  }
  message.taken += piece;
  const bool whole = message.taken == message.bytes;
  if (whole) in.skip(padding(message.bytes));
  if (piece == kPiece || in.filled() == 0) {
    in.publish();
    if (in.room_is_wanted()) neighbours_.ring(peer);
  }
  if (whole) {
    inbox_.finish(message.arrival);
    link.incoming.reset();
  }
}

// If the peer is gone, takes the last that it sent and closes the link; true then, once.
bool Links::settle(int peer) {
  Link& link = links_[peer];
  if (link.gone) return false;
  const std::optional<Neighbours::Departure> departure = neighbours_.departure(peer);
  if (!departure) return false;
  while (take(peer)) {
  }
  link.gone = true;
  if (!link.queue.empty()) --busy_;
  link.queue.clear();
  const bool cut_off = link.incoming.has_value();
  if (cut_off) inbox_.abandon(link.incoming->arrival);
  link.incoming.reset();
  if (departure->proper && !cut_off) {
    inbox_.matcher().leave(ranks_[peer]);
  } else {
    inbox_.matcher().lose(ranks_[peer], departure->why);
  }
  return true;
}

}  // namespace convoy::shm
