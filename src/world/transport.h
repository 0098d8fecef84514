// Messages between ranks. Everything distributed is written against this interface; what carries
// the bytes (threads of one process, shared memory, ZeroMQ, MPI, a simulation) is chosen when the
// job starts.
//
// The contract, which transport_contract_test.cc holds every implementation to:
// - One task owns a Transport and makes all calls, but wake(), which is for any task.
// - send and recv start an operation, never block, and give a ticket; its buffer must stay until
//   the ticket is done, cancelled, or the transport is gone. A done ticket is used up.
// - Messages from one rank to another under one tag arrive in the order sent, each into one recv.
//   Messages under different tags, or of different senders, may overtake each other. A message may
//   be sent before its recv is posted. A rank may send to itself.
// - A message may be shorter than the buffer of its recv (Completion tells); a longer one is a
//   TransportError there, and is dropped.
// - A send is done when its buffer may be used again, which says nothing about the receiver; it may
//   take until the receiver has posted its recv. So post what you receive before you wait for what
//   you send.
// - A peer that is lost (ended, killed, cut off, silent past the heartbeat's deadline) makes every
//   wait on an operation with it throw PeerLost, soon after the loss, also for operations started
//   later. What it sent before, and what has fully arrived, can still be received. A receive from
//   any rank, also one that is posted after the loss, throws PeerLost once per lost rank, when no
//   message is there for it, and stays open.
// - A ticket whose wait threw fails again when waited for again, until it is cancelled. To cancel a
//   ticket that is used up does nothing; to wait for one is a bug.
// - A peer that has ended its work properly (close()) after all its messages were taken is not lost
//   to anybody who has no operation open with it. Who waits for it or sends to it finds it lost.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace convoy {

class HostMemory;
class NativeCollectives;

inline constexpr int kAnyRank = -1;

// A tag separates conversations. 31 bits, since MPI promises no more.
using Tag = std::uint32_t;
inline constexpr Tag kLargestTag = 0x7fffffff;

using Ticket = std::uint64_t;

struct Completion {
  Ticket ticket = 0;
  int rank = 0;           // the sender of what was received; the receiver of what was sent
  std::size_t bytes = 0;  // of the message
};

class PeerLost : public TransportError {
 public:
  PeerLost(int rank, const std::string& why);
  int rank() const { return rank_; }

 private:
  int rank_;
};

class DeadlineExceeded : public TransportError {
 public:
  using TransportError::TransportError;
};

// What a rank is busy with, for the message that explains a hang: "all_reduce #812, 4,194,304
// bytes".
struct Position {
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::array<char, 48> place{};  // ends with a zero

  void set_place(std::string_view text);
  std::string text() const;
};

struct Sighting {
  Position position;
  double age_s = 0;  // since it was told
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual Ticket send(int to, Tag tag, std::span<const std::byte> bytes) = 0;
  virtual Ticket recv(int from, Tag tag, std::span<std::byte> buffer) = 0;  // from may be kAnyRank

  // Waits until one of the tickets is done. Nothing when the time is over or wake() was called. An
  // empty list waits for wake() alone.
  std::optional<Completion> wait_any(std::span<const Ticket> tickets, double timeout_s) {
    return await(tickets, timeout_s, Heed::wake);
  }
  // Waits for one ticket, whatever wake() says; throws DeadlineExceeded when the time is over, and
  // the ticket stays open then.
  Completion wait(Ticket ticket, double timeout_s) {
    const std::optional<Completion> done = await({&ticket, 1}, timeout_s, Heed::nothing);
    if (!done) [[unlikely]]
      throw_too_late(timeout_s);
    return *done;
  }

  // Gives up an operation, done or not: afterwards its buffer is the caller's again, and the
  // ticket is used up. A message that has begun to arrive is dropped; a send may or may not reach
  // its receiver, whole.
  virtual void cancel(Ticket ticket) = 0;

  // Makes the owner's present wait_any, or else its next, return at once. From any task.
  virtual void wake() = 0;

  // Tells the others what this rank is doing; cheap, never blocks.
  virtual void publish(const Position& position) = 0;
  // The last that was heard of another rank. Nothing if nothing was.
  virtual std::optional<Sighting> last_seen(int rank) = 0;

  // Ends this rank's part: flushes what was sent, then tells the others that it leaves properly. A
  // Transport that is destroyed without it looks lost to the others.
  virtual void close(double timeout_s) = 0;

  // Memory shared with the other ranks of this host; null where there is none.
  virtual HostMemory* host_memory() { return nullptr; }

  // Collectives of the transport's own library; null where there are none.
  virtual NativeCollectives* native_collectives() { return nullptr; }

  // False where messages have a size and no content (a simulation without numbers): arithmetic is
  // then left out.
  virtual bool carries_bytes() const { return true; }

 protected:
  enum class Heed { wake, nothing };
  // A wake() that comes while nothing is heeded is kept for the next await that heeds it.
  virtual std::optional<Completion> await(std::span<const Ticket> tickets, double timeout_s,
                                          Heed heed) = 0;

 private:
  [[noreturn]] void throw_too_late(double timeout_s) const;
};

}  // namespace convoy
