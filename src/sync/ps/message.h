// What workers and servers say to each other, in bytes. All of them run the same program (join
// compares builds), so that these structures travel as they lie in memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "world/transport.h"

namespace convoy {

// Conversations between a worker and a server. Within one, messages stay in order: the n-th head
// belongs to the n-th gradient.
enum class Stream : Tag {
  worker_head,  // WorkerHead
  gradient,     // the body of a push
  server_head,  // ServerHead
  values,       // by slice: weights
  ask,          // Ask, to the leader
  answer,       // Answer, from it
  buffers,      // running statistics, both ways
  order,        // Order, from the leader to servers
  setup,        // ServerJob as text, then values and state
  state,        // of the optimizer, or text
  mirror,       // MirrorHead, from server to server
  copy,         // what belongs to it
  mirrored,     // MirrorAck
  account,      // Account, from a server to the leader
};
inline constexpr Tag kServerTag = 0x20000000;
inline constexpr std::uint32_t kMostSlices = 1 << 20;
constexpr Tag tag_of(Stream stream, std::uint32_t slice = 0) {
  return kServerTag | Tag(stream) << 20 | slice;
}

inline constexpr std::uint32_t kProtocol = 0x43505331;

struct WorkerHead {
  // claim: this worker now talks about the slice to the server that reads this, since those before
  // it are lost.
  enum Kind : std::uint32_t { push, pull, rest, state, report, claim, bye };
  std::uint32_t protocol = kProtocol;
  std::uint32_t kind = push;
  std::uint32_t generation = 0;  // of the weights that the gradient was made with
  std::uint32_t epoch = 0;
  std::uint32_t slice = 0;      // of push, pull and claim; of state: which arena
  std::uint32_t samples = 0;    // that the gradient is of,
  std::uint32_t mean_over = 0;  // and those that it is divided by
  std::uint32_t extra = 0;      // of a worker that rests already: an update by itself
  std::uint32_t shards = 0;     // that come one after the other, to be summed exactly; 0: one sum
  std::uint32_t shard = 0;      // of state: the server that had it at first
  std::uint64_t number = 0;   // counts the worker's pushes of the slice; claim: of its last answer
  std::uint64_t clock = 0;    // of the worker in this slice, this push included: see Clock
  std::int64_t version = 0;   // of the slice's weights that the worker has,
  std::uint64_t term = 0;     // and how often another server had taken the slice over
  std::uint64_t bytes = 0;    // of the gradient that follows,
  std::uint64_t lies_at = 0;  // or lies there, see SharedBodies; 0: it follows
};

struct ServerHead {
  enum Kind : std::uint32_t { values, refused };
  std::uint32_t kind = values;
  std::uint32_t generation = 0;
  std::uint32_t slice = 0;
  std::uint32_t bytes = 0;
  std::int64_t version = 0;  // updates that the values have had
  std::uint64_t number = 0;  // of the worker's last push among them
  std::uint64_t term = 0;    // how often the slice was taken over
  std::array<char, 200> reason{};
};

// A worker to the leader: what it has done, and that it wants more; bye: that it leaves.
struct Ask {
  enum Kind : std::uint32_t { next, arrive, bye };
  std::uint32_t kind = next;
  std::uint32_t stop = 0;   // the user wants it to end
  std::int64_t lease = -1;  // that is done; -1: none
  std::int64_t loss = 0;    // sum, in units of 2^-24
  std::int64_t correct = 0, flip_correct = 0, shift_correct = 0, samples = 0;
  std::array<char, 400> failure{};   // why it cannot go on; empty: it can
  std::array<char, 1600> figures{};  // of arrive: what it has measured so far, as JSON
};

// Numbers of an epoch, so far or in all.
struct EpochSums {
  std::int64_t loss = 0, correct = 0, samples = 0;  // of training
  std::int64_t test_loss = 0, test_correct = 0, test_flip_correct = 0, test_shift_correct = 0,
               test_samples = 0;
  std::int64_t seen = 0, missing = 0, twice = 0;
};

struct Answer {
  // train, evaluate: a lease. rest: settle, tell the servers, then arrive. merged: take the mean
  // statistics. epoch: it is over. stopped: before its end; finished: all are done. failed: a
  // worker met numbers that are none.
  enum Kind : std::uint32_t { train, evaluate, rest, merged, epoch, stopped, finished, failed };
  std::uint32_t kind = train;
  std::uint32_t epoch_number = 0;
  std::int64_t lease = -1;
  std::uint32_t step = 0, part = 0;
  std::uint32_t mean_over = 0;
  std::uint32_t extra = 0;      // of train: what a lost worker left, after this one came to rest
  std::uint32_t evaluated = 0;  // of epoch: whether test numbers are there
  std::uint32_t buffers = 0;    // merged ones follow
  EpochSums sums;
  std::array<char, 400> text{};  // failed: why; elsewhere what people should read
};

// A slice as it is, to the server that would take over: see server_mirrors.cc. Its copy follows.
struct MirrorHead {
  enum Kind : std::uint32_t { copy, bye };  // bye: the server leaves, since all workers have
  std::uint32_t kind = copy;
  std::uint32_t slice = 0;
  std::uint32_t generation = 0;
  std::uint64_t edition = 0;
  std::int64_t version = 0;
  std::uint64_t term = 0;
};

struct MirrorAck {
  std::uint32_t slice = 0;
  std::uint64_t edition = 0;
};

// What a takeover cost, when all workers have claimed the slices of a lost server.
struct Account {
  std::uint32_t server = 0;    // that is lost
  std::uint32_t alone = 0;     // no other server is left to mirror
  std::int64_t updates = 0;    // that workers had seen and that are gone, of the slice with most
  std::int64_t gradients = 0;  // that were answered and are gone, of all slices
};

// The leader to all servers.
struct Order {
  enum Kind : std::uint32_t { keep, go_back };
  std::uint32_t kind = keep;      // keep the weights; go_back to those kept
  std::uint32_t generation = 0;   // from now on, after go_back
  std::array<char, 32> policy{};  // from now on, after go_back
};

template <typename Message>
std::span<const std::byte> bytes_of(const Message& message) {
  return std::as_bytes(std::span(&message, 1));
}
template <typename Message>
std::span<std::byte> writable_bytes_of(Message& message) {
  return std::as_writable_bytes(std::span(&message, 1));
}

template <std::size_t N>
void set_text(std::array<char, N>& to, std::string_view text) {
  to.fill(0);
  std::memcpy(to.data(), text.data(), std::min(text.size(), N - 1));
}
template <std::size_t N>
std::string text_in(const std::array<char, N>& from) {
  return {from.data(), ::strnlen(from.data(), N)};
}

}  // namespace convoy
