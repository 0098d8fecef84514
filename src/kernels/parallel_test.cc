#include "kernels/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
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

// The program that is started anew is this test, which then ends with what it was given.
TEST(Parallel, StartsAnewToSpinForALimitedTime) {
  constexpr const char* kChild = "CONVOY_TEST_STARTED_ANEW";
  if (std::getenv(kChild)) std::exit(std::getenv("GOMP_SPINCOUNT") ? 42 : 1);
  const auto start = [&](const char* variable, const char* value) {
    ::setenv(kChild, "1", 1);
    ::unsetenv("GOMP_SPINCOUNT");
    ::unsetenv("OMP_WAIT_POLICY");
    if (variable) ::setenv(variable, value, 1);
    char name[] = "kernels_test";
    char filter[] = "--gtest_filter=Parallel.StartsAnewToSpinForALimitedTime";
    char* arguments[] = {name, filter, nullptr};
    limit_spinning(arguments);
    std::exit(7);  // not started anew
  };
  EXPECT_EXIT(start(nullptr, ""), testing::ExitedWithCode(42), "");
  EXPECT_EXIT(start("OMP_WAIT_POLICY", "active"), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(start("GOMP_SPINCOUNT", "10"), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace convoy
