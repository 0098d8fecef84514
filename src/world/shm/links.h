// Messages between the ranks of one host, through a ring for every ordered pair. A message is a
// head and its bytes, in pieces, so that one longer than a ring passes through it while both sides
// make progress. What comes goes to an Inbox. A transport that reaches other hosts too can share
// its Inbox with this.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "world/inbox.h"
#include "world/shm/neighbours.h"
#include "world/shm/ring_ends.h"

namespace convoy::shm {

class Links {
 public:
  // `ranks`: those of this host, by their place on it.
  Links(Neighbours& neighbours, std::span<const int> ranks, Inbox& inbox);

  // `peer` is a place on the host. Puts into the ring what fits.
  Ticket send(int peer, Tag tag, std::span<const std::byte> bytes);
  // A send that has begun goes on from a copy. False: the ticket is not one of a send under way.
  bool cancel(Ticket ticket);

  // Moves what can be moved, both ways; true if there was anything. A thorough call also finds out
  // who is gone and tells the Inbox's Matcher.
  bool progress(bool thorough);

  // All that was sent lies in rings, or its receiver is gone.
  bool flushed() const { return busy_ == 0; }

 private:
  struct Outgoing {
    Ticket ticket = 0;
    Tag tag = 0;
    std::span<const std::byte> bytes;
    std::size_t sent = 0;
    bool begun = false;
    std::unique_ptr<std::byte[]> copy;  // of what was cancelled
  };
  struct Incoming {
    Inbox::Arrival arrival = 0;
    std::size_t bytes = 0;
    std::size_t taken = 0;
  };
  struct Link {
    Link(RingWriter writer, RingReader reader) : out(writer), in(reader) {}
    Link(Link&&) = default;

    RingWriter out;
    RingReader in;
    std::deque<Outgoing> queue;
    std::optional<Incoming> incoming;
    bool gone = false;
  };

  bool put(int peer);
  bool put_message(int peer, Outgoing& message);
  bool take(int peer);
  void take_piece(int peer);
  bool settle(int peer);

  Neighbours& neighbours_;
  const std::vector<int> ranks_;
  Inbox& inbox_;
  std::vector<Link> links_;
  int busy_ = 0;  // links with a queue
};

}  // namespace convoy::shm
