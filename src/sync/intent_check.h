// Finds ranks that are in different operations under the same number. Every rank tells its right
// neighbour in the group what it is about to do, in eight bytes that travel beside the data: who
// waits for data watches for them too, so an operation that agrees pays no round trip, and one that
// does not ends at once instead of at its deadline. All ranks do the same if every pair of
// neighbours does.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sync/element.h"
#include "sync/group.h"
#include "world/runtime.h"
#include "world/transport.h"

namespace convoy {

enum class Kind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  barrier
};
std::string kind_name(Kind kind);

// What an operation is, for comparison: packs into eight bytes.
struct Intent {
  Kind kind = Kind::barrier;
  Element element = Element::f32;
  Reduction reduction = Reduction::sum;
  int algorithm = 0;  // row of the table
  int root = 0;
  std::uint64_t bytes = 0;

  std::uint64_t pack() const;
  static Intent unpack(std::uint64_t packed);
  std::string text() const;  // "all_reduce (sum of 4,194,304 bytes of f32 by ring)"
};

// Ranks are in different operations. A bug of the program, not of a peer.
class Mismatch : public TransportError {
 public:
  using TransportError::TransportError;
};

class IntentCheck {
 public:
  IntentCheck(Runtime& runtime, Transport& transport, const Group& group, Tag tag, Intent mine);
  IntentCheck(const IntentCheck&) = delete;
  IntentCheck& operator=(const IntentCheck&) = delete;
  ~IntentCheck();  // gives up what is open

  bool open() const { return receiving_; }
  // Waits for the ticket and looks after the neighbour's word meanwhile. Throws Mismatch.
  Completion wait_beside(Ticket ticket, int rank, double timeout_s);
  // Waits for what is still open.
  void finish(double timeout_s);

 private:
  void compare();

  Runtime& runtime_;
  Transport& transport_;
  const Intent mine_;
  const std::uint64_t sent_;
  std::uint64_t received_ = 0;
  int left_ = 0;
  int right_ = 0;
  Ticket send_ = 0;
  Ticket recv_ = 0;
  bool sending_ = false;
  bool receiving_ = false;
  bool woken_ = false;  // a wake() that was meant for somebody else; passed on at the end
};

}  // namespace convoy
