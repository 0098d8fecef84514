// Which message belongs to which receive: the bookkeeping that most transports share. It holds the
// open operations of one rank (tickets) and the messages that came before their receive, and knows
// nothing about where bytes come from or lie: the transport moves them. It takes no locks.
//
// A receive takes the first message, in the order of arrival, that comes from its rank under its
// tag; a message goes to the first receive, in the order of posting, that wants it.
//
// The transport's part:
// - A message's head has come: arrive(). With a ticket, move the bytes to buffer(ticket), which is
//   empty when they are wanted no more, and say finish(ticket) when all are there. Without, keep
//   the message, whose name is `parcel`, until a receive asks for it.
// - A receive is posted: open_recv(). With a parcel, move that message to buffer(ticket), then
//   finish(ticket).
// - A peer is lost: first finish() what has fully arrived, withdraw() kept messages that will never
//   be complete, then lose().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "world/transport.h"

namespace convoy {

class Matcher {
 public:
  using Parcel = std::uint32_t;  // the transport's own name for a message

  struct Posted {
    Ticket ticket = 0;
    std::optional<Parcel> early;
  };

  explicit Matcher(int size) : size_(size) {}

  int size() const { return size_; }

  // `note` is the transport's own, see note_of().
  Ticket open_send(int to, std::size_t bytes, std::uint64_t note = 0);
  Posted open_recv(int from, Tag tag, std::span<std::byte> buffer);

  std::optional<Ticket> arrive(int from, Tag tag, std::size_t bytes, Parcel parcel);
  // Where the bytes of a matched message belong: as long as the message, or empty when the receive
  // was given up, has failed, or is too short.
  std::span<std::byte> buffer(Ticket ticket);
  // All bytes are in the buffer; or, of a send: the buffer is the caller's again. A ticket that was
  // given up or has failed in the meantime stays so.
  void finish(Ticket ticket);
  void withdraw(int from, Tag tag, Parcel parcel);
  // Finishes those sends to a rank of which is_done(note) says so: for a transport that does not
  // finish a send before somebody asks.
  template <typename IsDone>
  void finish_sends(int to, IsDone is_done) {
    for (std::uint32_t slot = 0; slot < operations_.size(); ++slot)
      if (operations_[slot].state == State::sending && operations_[slot].rank == to &&
          is_done(operations_[slot].capacity))
        finish(ticket_of(slot));
  }

  // The rank is lost: its open operations fail, and later ones at once. The first reason stays.
  void lose(int rank, const std::string& why);
  // The rank has ended properly: who waits for it, or sends to it, finds it lost, but nobody else.
  // True: an operation failed by that.
  bool leave(int rank);
  bool gone(int rank) const { return !fate_.empty() && fate_[rank] != Fate::present; }

  // The first of the tickets that is done, which is used up then. Throws what a failed one failed
  // by; it fails again when asked again, until it is given up. A receive from any rank throws
  // PeerLost once per lost rank and stays open.
  std::optional<Completion> take_done(std::span<const Ticket> tickets);

  void give_up(Ticket ticket);  // nothing happens if it is used up

  bool is_open(Ticket ticket) const { return find(ticket) != nullptr; }
  bool is_open_send(Ticket ticket) const {
    const Operation* operation = find(ticket);
    return operation != nullptr && operation->state == State::sending;
  }
  std::uint64_t note_of(Ticket send) const { return find(send)->capacity; }
  std::string reason(int rank) const;  // why it is gone
  // "a message from rank 3 under tag 7", for a message about a wait that found no end.
  std::string describe(Ticket ticket) const;
  // How many sends are not done.
  int open_sends() const { return open_sends_; }

 private:
  enum class State : std::uint8_t { free, sending, posted, arriving, done, lost, too_long };
  enum class Fate : std::uint8_t { present, left, lost };
  static constexpr std::uint32_t kNone = ~0u;

  struct Operation {
    std::byte* data = nullptr;
    std::size_t capacity = 0;  // of a receive's buffer; of a send, the note
    std::size_t bytes = 0;     // of the message
    std::uint32_t generation =
        1;  // rises when the slot is used anew: a used-up ticket is known by it
    std::uint32_t next = kNone;
    std::int32_t rank = 0;  // the peer; kAnyRank until a message has come
    Tag tag = 0;
    std::uint32_t losses_told = 0;  // of losses_, to a receive from any rank
    State state = State::free;
    bool is_send = false;
  };

  struct Early {
    std::size_t bytes = 0;
    std::uint32_t next = kNone;
    std::int32_t rank = 0;
    Tag tag = 0;
    Parcel parcel = 0;
  };

  // First-in-first-out lists by tag, over nodes in a vector that have `next` and `tag`. One list is
  // enough for a few nodes; then there are some for every node.
  class Chains {
   public:
    template <typename Node>
    void append(std::vector<Node>& nodes, std::uint32_t node);
    // Takes out the first node under `tag` for which wanted(node) is true; kNone if there is none.
    template <typename Node, typename Wanted>
    std::uint32_t take(std::vector<Node>& nodes, Tag tag, Wanted wanted);

   private:
    struct Chain {
      std::uint32_t head = kNone;
      std::uint32_t tail = kNone;
    };
    Chain& chain(Tag tag);
    template <typename Node>
    void grow(std::vector<Node>& nodes);
    template <typename Node>
    static void link(std::vector<Node>& nodes, Chain& chain, std::uint32_t node);

    Chain only_;  // as long as there are few nodes
    std::vector<Chain> chains_;
    std::size_t count_ = 0;
  };

  std::uint32_t new_operation();
  void free_operation(std::uint32_t slot);
  Ticket ticket_of(std::uint32_t slot) const;
  const Operation* find(Ticket ticket) const {
    const auto slot = static_cast<std::uint32_t>(ticket);
    if (slot >= operations_.size()) return nullptr;
    const Operation& operation = operations_[slot];
    const bool open = operation.generation == ticket >> 32 && operation.state != State::free;
    return open ? &operation : nullptr;
  }
  Operation* find(Ticket ticket) {
    return const_cast<Operation*>(static_cast<const Matcher*>(this)->find(ticket));
  }
  bool depart(int rank, Fate fate);
  void match(Operation& operation, int from, std::size_t bytes);
  [[noreturn]] void fail(const Operation& operation) const;

  int size_;
  std::vector<Operation> operations_;
  std::uint32_t free_operation_ = kNone;
  Chains posted_;
  std::vector<Early> early_;
  std::uint32_t free_early_ = kNone;
  Chains early_chains_;
  int open_sends_ = 0;
  std::vector<Fate> fate_;  // empty as long as all are present
  std::vector<int> losses_;
  std::vector<std::string> reasons_;  // of losses_
};

}  // namespace convoy
