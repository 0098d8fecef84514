// The messages that come to one rank, as bytes: a Matcher that also keeps the bytes of messages
// whose receive is not posted yet. For transports that get a message's head first and then its
// bytes, at once or piece by piece. Takes no locks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "world/matcher.h"

namespace convoy {

class Inbox {
 public:
  using Arrival = std::uint32_t;  // names a message from begin() to finish() or abandon()

  explicit Inbox(int size) : matcher_(size) {}

  Matcher& matcher() { return matcher_; }

  Ticket recv(int from, Tag tag, std::span<std::byte> buffer);

  // A message of `bytes` begins to arrive. Messages of one sender and tag must begin in the order
  // sent.
  Arrival begin(int from, Tag tag, std::size_t bytes);
  // The same for a message whose bytes wait at the sender until they are wanted: no memory is kept
  // for it. When its receive is there, take_wanted() names it.
  Arrival announce(int from, Tag tag, std::size_t bytes);
  std::vector<Arrival> take_wanted() { return std::exchange(wanted_, {}); }
  // Bytes of messages of this rank that are kept for receives to come.
  std::size_t kept_of(int from) const {
    return static_cast<std::size_t>(from) < kept_.size() ? kept_[from] : 0;
  }
  // Where all the message's bytes belong: straight in the posted buffer, or in memory that is kept
  // for the receive to come. Null: nobody wants them. May change while a message arrives (its
  // receive was given up), so ask again for every piece.
  std::byte* bytes_of(Arrival arrival);
  void finish(Arrival arrival);   // all its bytes are there
  void abandon(Arrival arrival);  // the rest will never come; call before Matcher::lose

 private:
  struct Message {
    int from = 0;
    Tag tag = 0;
    std::size_t bytes = 0;
    Ticket ticket = 0;  // of the receive that it belongs to, if matched
    bool matched = false;
    bool complete = false;
    bool announced = false;
    std::unique_ptr<std::byte[]> kept{};  // if it came before its receive
  };
  struct Spare {
    std::size_t bytes = 0;
    std::unique_ptr<std::byte[]> memory{};
  };

  Arrival add(Message message);

  void free(Arrival arrival);
  std::unique_ptr<std::byte[]> take_memory(std::size_t bytes);

  Matcher matcher_;
  std::vector<Message> messages_;
  std::vector<Arrival> free_;
  std::vector<Arrival> wanted_;
  std::vector<std::size_t> kept_;  // bytes, by rank
  // Memory of large messages that were kept: new pages cost more than the bytes that go into them.
  std::vector<Spare> spare_;
  std::size_t spare_bytes_ = 0;
};

}  // namespace convoy
