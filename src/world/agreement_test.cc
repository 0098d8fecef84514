#include "world/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "world/inproc/inproc.h"

namespace convoy {
namespace {

using ::testing::HasSubstr;

// How many of three ranks refuse, where rank 2 is `odd`; each must name the difference.
int refusals(const Identity& odd, const std::string& difference) {
  std::atomic<int> count = 0;
  run_inproc(3, {}, [&](World world) {
    const Identity usual{"b1", "train --lr 1", "a"};
    try {
      agree(world.transport, world.transport.rank() == 2 ? odd : usual, 60);
      world.transport.close(60);
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(difference));
      ++count;
    }
  });
  return count;
}

TEST(Agreement, EqualRanksGoOn) { EXPECT_EQ(refusals({"b1", "train --lr 1", "c"}, ""), 0); }

TEST(Agreement, AnotherBuildIsRefusedEverywhere) {
  EXPECT_EQ(refusals({"b2", "train --lr 1", "c"}, "rank 2 (host c) runs build b2"), 3);
}

TEST(Agreement, OtherArgumentsAreRefusedEverywhere) {
  EXPECT_EQ(refusals({"b1", "train --lr 2", "c"}, "`train --lr 2`, rank 0 with `train --lr 1`"), 3);
  const std::string large(100'000, 'x');
  EXPECT_EQ(refusals({"b1", large, "c"}, "rank 2"), 3);
}

TEST(Agreement, TheProgramHasABuild) {
  EXPECT_EQ(program_build(), program_build());
  EXPECT_EQ(program_build().find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace convoy
