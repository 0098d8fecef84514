// What lies in the shared memory of a host: for every rank a slot, for every pair (owner, watcher)
// a pulse, for every ordered pair a ring of bytes, for every rank a region. All of it is valid when
// it is zero. Ranks are meant by their place on the host, from 0.
#pragma once

#include <linux/futex.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace convoy::shm {

enum class Presence : std::uint32_t { absent, present, closed, lost };

struct Slot {
  alignas(64) std::atomic<Presence> presence;
  std::atomic<std::int32_t> pid;
  std::array<std::atomic<std::uint64_t>, 16> cpus;  // a bit for every CPU that the rank may use

  // Whoever has something for this rank changes the bell and wakes it, if it is asleep.
  alignas(64) std::atomic<std::uint32_t> asleep;
  std::atomic<std::uint32_t> bell;

  alignas(64) std::atomic<std::uint32_t> barriers;  // how many the rank has entered

  // The rank's Position. The version is odd while it is being written.
  alignas(64) std::atomic<std::uint32_t> version;
  std::atomic<double> told_at_s;
  std::array<std::atomic<std::uint64_t>, 8> position;
};

// How many ranks have come to the present barrier (low half), and how many barriers are over (high
// half).
struct Barrier {
  alignas(64) std::atomic<std::uint64_t> state;
};

// A futex that the kernel marks with FUTEX_OWNER_DIED when its owner dies, and for which it wakes
// one sleeper: hence one for every watcher. `link` is the owner's robust list, which means nothing
// to others.
struct Pulse {
  robust_list link;
  std::atomic<std::uint32_t> word;
};

// A queue of bytes with one writer and one reader. Both counts only grow.
struct Ring {
  alignas(64) std::atomic<std::uint64_t> written;
  std::atomic<std::uint32_t> wants_room;  // the writer waits for it: not 0
  alignas(64) std::atomic<std::uint64_t> read;
};

// Before every message in a ring. Messages begin at multiples of its size, so that it never wraps
// around.
struct MessageHeader {
  std::uint64_t bytes;
  std::uint32_t tag;
  std::uint32_t unused;
};
static_assert(sizeof(MessageHeader) == 16);

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<double>::is_always_lock_free &&
              std::atomic<Presence>::is_always_lock_free);

}  // namespace convoy::shm
