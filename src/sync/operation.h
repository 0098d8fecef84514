// What an algorithm of a collective is handed, and the few tools that all of them use.
//
// A buffer is cut into as many *chunks* as the group has ranks; rank i of the group owns chunk i. A
// chunk travels in *segments* of at most segment_bytes, so that a rank can pass on the first one
// while the next ones are still under way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/part.h"
#include "sync/element.h"
#include "sync/group.h"
#include "world/transport.h"

namespace convoy {

class IntentCheck;
class HostTeam;

// Room for what arrives before it is added. Grows to what an operation needs and stays.
class Scratch {
 public:
  explicit Scratch(bool real) : real_(real) {}
  // Valid until the next call. Where messages have no content, the room has none either.
  std::span<std::byte> room(std::size_t bytes);

 private:
  bool real_;
  std::vector<std::byte> memory_;
};

struct Operation {
  Transport& transport;
  const Group* group;
  Scratch& scratch;
  Tag tag = 0;
  Element element = Element::f32;
  Reduction reduction = Reduction::sum;
  double factor = 1;  // applied once, by the rank that completes a part of the sum
  double timeout_s = 60;
  std::size_t segment_bytes = 256 << 10;
  IntentCheck* intent_check = nullptr;  // looked after while its outcome is open
  HostTeam* team = nullptr;             // the ranks by host, where the group is the whole world

  int size() const { return group->size(); }
  int index() const { return group->index; }
  int peer(int position) const { return group->ranks[static_cast<std::size_t>(position)]; }
  std::size_t width() const { return element_bytes(element); }
  // A whole number of elements, at least one.
  std::size_t segment_length() const {
    return segment_bytes < width() ? width() : segment_bytes / width() * width();
  }

  // The same operation among others.
  Operation among(const Group& others) const {
    Operation inner = *this;
    inner.group = &others;
    return inner;
  }

  // Arithmetic, left out where messages have no content.
  void add(std::span<std::byte> into, std::span<const std::byte> from) const;
  void apply_factor(std::span<std::byte> values) const;

  // Waits for a message of exactly `bytes`; throws PeerLost, DeadlineExceeded, or TransportError
  // where the message has another size.
  void finish(Ticket ticket, int rank, std::size_t bytes) const;
};

// Messages to or from one rank that were started and not waited for, oldest first. What is still
// open when this goes, because an error passes through, is given up. Empty messages do not travel:
// both sides know their size.
class Flight {
 public:
  static constexpr unsigned kCapacity = 8;  // a power of two

  Flight(const Operation& operation, int rank) : operation_(operation), rank_(rank) {}
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;
  ~Flight();

  void send(std::span<const std::byte> bytes) {
    push(bytes.empty() ? 0 : operation_.transport.send(rank_, operation_.tag, bytes), bytes.size());
  }
  void recv(std::span<std::byte> buffer) {
    push(buffer.empty() ? 0 : operation_.transport.recv(rank_, operation_.tag, buffer),
         buffer.size());
  }
  void finish_oldest() {
    const Entry& oldest = entries_[first_ % kCapacity];
    if (oldest.bytes > 0) operation_.finish(oldest.ticket, rank_, oldest.bytes);
    ++first_;
  }
  void finish_all() {
    while (open() > 0) finish_oldest();
  }
  unsigned open() const { return last_ - first_; }
  bool full() const { return open() == kCapacity; }

 private:
  struct Entry {
    Ticket ticket = 0;
    std::size_t bytes = 0;
  };
  void push(Ticket ticket, std::size_t bytes) {
    entries_[last_ % kCapacity] = {ticket, bytes};
    ++last_;
  }

  const Operation& operation_;
  const int rank_;
  std::array<Entry, kCapacity> entries_{};
  unsigned first_ = 0;
  unsigned last_ = 0;
};

// How many segments are received ahead of the one being added.
inline constexpr std::size_t kAhead = 4;

// Both in segments, the second while the first is under way; `outgoing` and `incoming` must not
// overlap. `incoming` is added to, or replaced.
enum class Arrival { add, replace };
void exchange(const Operation& operation, int rank, std::span<const std::byte> outgoing,
              std::span<std::byte> incoming, Arrival arrival);

}  // namespace convoy
