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
  ask,          // Ask, to the coordinator
  answer,       // Answer, from it
  buffers,      // running statistics, both ways
  order,        // Order, from the coordinator to other servers
  setup,        // ServerJob as text, then values and state
  state,        // of the optimizer, or text
};
inline constexpr Tag kServerTag = 0x20000000;
inline constexpr std::uint32_t kMostSlices = 1 << 20;
constexpr Tag tag_of(Stream stream, std::uint32_t slice = 0) {
  return kServerTag | Tag(stream) << 20 | slice;
}

inline constexpr std::uint32_t kProtocol = 0x43505331;

struct WorkerHead {
  enum Kind : std::uint32_t { push, pull, rest, state, report, bye };
  std::uint32_t protocol = kProtocol;
  std::uint32_t kind = push;
  std::uint32_t generation = 0;  // of the weights that the gradient was made with
  std::uint32_t epoch = 0;
  std::uint32_t slice = 0;      // of push and pull; of state: which arena
  std::uint32_t samples = 0;    // that the gradient is of,
  std::uint32_t mean_over = 0;  // and those that it is divided by
  std::uint32_t extra = 0;      // of a worker that rests already: an update by itself
  std::uint32_t shards = 0;     // that come one after the other, to be summed exactly; 0: one sum
  std::uint64_t bytes = 0;      // of the gradient that follows
};

struct ServerHead {
  enum Kind : std::uint32_t { values, refused };
  std::uint32_t kind = values;
  std::uint32_t generation = 0;
  std::uint32_t slice = 0;
  std::uint32_t bytes = 0;
  std::uint64_t version = 0;  // updates that the values have had
  std::array<char, 200> reason{};
};

// A worker to the coordinator: what it has done, and that it wants more.
struct Ask {
  enum Kind : std::uint32_t { next, arrive };
  std::uint32_t kind = next;
  std::uint32_t stop = 0;   // the user wants it to end
  std::int64_t lease = -1;  // that is done; -1: none
  std::int64_t loss = 0;    // sum, in units of 2^-24
  std::int64_t correct = 0, flip_correct = 0, shift_correct = 0, samples = 0;
  std::array<char, 400> failure{};  // why it cannot go on; empty: it can
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
  // worker met numbers that are none; abandoned: worker 0 is lost.
  enum Kind : std::uint32_t {
    train,
    evaluate,
    rest,
    merged,
    epoch,
    stopped,
    finished,
    failed,
    abandoned
  };
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

// The coordinator to all servers.
struct Order {
  enum Kind : std::uint32_t { keep, go_back, end };
  std::uint32_t kind = keep;      // keep the weights; go_back to those kept; end: none follow
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
