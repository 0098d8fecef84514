// Worlds over shared memory for tests: ranks as threads over one mapping, and as processes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "world/shm/shm_transport.h"
#include "world/test_ranks.h"
#include "world/thread_runtime.h"
#include "world/world.h"

namespace convoy::shm {

inline constexpr double kLong_s = 60;  // that a test may wait
inline constexpr std::size_t kTestRegionBytes = std::size_t{64} << 20;

inline std::byte pattern(std::uint32_t seed, std::size_t at) {
  return std::byte((seed * 2654435761u + at * 31) >> 7);
}

inline std::vector<std::byte> patterned(std::uint32_t seed, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = pattern(seed, i);
  return data;
}

inline SegmentOptions small_segment(int ranks) {
  return {.ranks = ranks, .region_bytes = kTestRegionBytes};
}

inline void run_rank(Segment& segment, int rank, const RankBody& body) {
  ThreadRuntime runtime;
  const auto transport = make_shm_transport(segment, {.rank = rank, .size = segment.ranks()});
  body({runtime, *transport});
}

// Throws what the first rank that failed threw.
inline void run_threads(const SegmentOptions& options, const RankBody& body) {
  Segment segment = Segment::create(options);
  run_rank_threads(options.ranks, [&](int rank) { run_rank(segment, rank, body); });
}

// Ranks as children of this process, which see the segment only by its descriptor.
class Processes : public RankProcesses {
 public:
  Processes(Segment& segment, const RankBody& body) {
    for (int rank = 0; rank < segment.ranks(); ++rank)
      start([&, rank] {
        ThreadRuntime runtime;
        const auto transport = join_shm(dup(segment.fd()), {.rank = rank, .size = segment.ranks()});
        body({runtime, *transport});
      });
  }
};

inline void run_processes(const SegmentOptions& options, const RankBody& body) {
  Segment segment = Segment::create(options);
  Processes processes(segment, body);
  EXPECT_TRUE(processes.wait_all());
}

}  // namespace convoy::shm
