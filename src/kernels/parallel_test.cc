#include "kernels/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace convoy {
namespace {

TEST(Parallel, EveryIndexOnce) {
  for (int team : {1, 2, 3}) {
    set_threads(team);
    std::vector<int> hits(1001, 0);
    parallel_for(hits.size(), 10, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) ++hits[i];
    });
    for (int hit : hits) EXPECT_EQ(hit, 1);
  }
}

TEST(Parallel, DenormalsAreZeroOnEveryThread) {
  set_threads(2);
  std::atomic<int> zero = 0;
  std::atomic<int> team = 0;
  parallel([&](int, int size) {
    team = size;
    volatile float tiny = 1e-38f;
    tiny = tiny * 0.01f;
    zero += tiny == 0.0f;
  });
  EXPECT_EQ(zero, team);
}

}  // namespace
}  // namespace convoy
