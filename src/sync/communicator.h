// Collective operations of a group of ranks. Every rank of the group calls the same operations in
// the same order; each returns when the own rank's part is done.
//
// Every operation has a number, a kind and a size. At its entry they are published (Position), and
// compared between neighbours (IntentCheck): ranks that are in different operations end with
// Mismatch. A rank that hears nothing for timeout_s ends with DeadlineExceeded, which says who is
// missing and where everybody was last seen; a lost rank ends all others with PeerLost, which names
// the rank that was lost first where that is known. After any of these the buffers' contents are
// undefined and the Communicator is spent: later calls throw the same again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sync/algorithms.h"
#include "sync/host_team.h"
#include "sync/intent_check.h"
#include "world/runtime.h"
#include "world/transport.h"

namespace convoy {

struct CommunicatorOptions {
  std::string algorithm = "auto";  // of all_reduce; a name in algorithms() or auto
  double timeout_s = 60;           // without any message
  std::size_t segment_bytes = 256 << 10;
  std::vector<int> ranks = {};  // of the group, the own one among them; empty: all
  int channel = 0;  // 0 to 15: groups that share a rank at the same time use different ones
};

// Tags of collectives have this bit; nobody else may use such tags.
inline constexpr Tag kCollectiveTag = 0x40000000;

class Communicator {
 public:
  // Throws ConfigError for an algorithm that there is not. Sends nothing.
  Communicator(Runtime& runtime, Transport& transport, CommunicatorOptions options = {});

  int size() const { return group_.size(); }
  int index() const { return group_.index; }  // the own place in the group
  const Group& group() const { return group_; }
  Runtime& runtime() { return runtime_; }
  Transport& transport() { return transport_; }

  // In place. mean divides by the number of ranks.
  void all_reduce(std::span<float> values, Reduction reduction = Reduction::sum);
  void all_reduce(std::span<std::int64_t> values, Reduction reduction = Reduction::sum);
  void all_reduce(std::span<std::byte> buffer, Element element, Reduction reduction);
  // By an algorithm that need not be in the table.
  void all_reduce(std::span<std::byte> buffer, Element element, Reduction reduction,
                  const Algorithm& algorithm);

  // The elements are cut into a chunk per rank (chunk_of). Before all_gather a rank has its own
  // chunk and afterwards all; after reduce_scatter the own chunk is reduced, the rest undefined.
  Range chunk_of(std::size_t count, int index) const { return part_of(count, size(), index); }
  void reduce_scatter(std::span<std::byte> buffer, Element element, Reduction reduction);
  void all_gather(std::span<std::byte> buffer, Element element);

  // root is a place in the group. After reduce the buffers of the others are undefined.
  void broadcast(std::span<std::byte> buffer, int root);
  void reduce(std::span<std::byte> buffer, Element element, Reduction reduction, int root);
  void barrier();

  // What `auto` takes for a buffer of this size.
  const Algorithm& choose(std::size_t bytes);
  std::uint64_t operations() const { return sequence_; }

 private:
  template <typename Body>
  void perform(const Intent& intent, const Body& body);
  Operation operation(Element element, Reduction reduction);
  Tag tag(int stream) const;
  HostTeam& team();
  void publish(const std::string& place);
  [[noreturn]] void explain(const Intent& intent, IntentCheck& intent_check);
  std::vector<int> absent() const;  // who has not come to the present operation
  std::string whereabouts(std::span<const int> missing) const;
  struct Culprit {
    int rank = 0;
    int or_else = -1;  // the other of two that lost each other
  };
  int lost_by(int rank) const;
  Culprit first_lost(int rank) const;

  Runtime& runtime_;
  Transport& transport_;
  const CommunicatorOptions options_;
  Group group_;
  const Algorithm* algorithm_ = nullptr;  // null: auto
  Scratch scratch_;
  std::unique_ptr<HostTeam> team_;
  std::uint64_t sequence_ = 0;
  Position position_;
  std::exception_ptr failure_;
};

}  // namespace convoy
