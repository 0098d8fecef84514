#include "optim/lookahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"

namespace convoy {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Lookahead, ReadsWhatTheUserSays) {
  EXPECT_EQ(parse_lookahead("", "--lookahead").every, 0);
  const LookaheadOptions options = parse_lookahead("5:0.95", "--lookahead");
  EXPECT_EQ(options.every, 5);
  EXPECT_DOUBLE_EQ(options.keep, 0.95);
  for (const char* wrong : {"5", "5:", ":0.9", "0:0.9", "-1:0.9", "5:0", "5:1", "5:1.5", "5:nan",
                            "5:x", "x:0.9", "5:0.9:1", "5 :0.9", "99999999999:0.9"})
    EXPECT_THAT([&] { parse_lookahead(wrong, "--lookahead"); },
                ThrowsMessage<ConfigError>(HasSubstr("--lookahead must be UPDATES:KEEP")))
        << wrong;
}

// Numbers that each update makes larger by 1, in ranges or in backward, against the rule written
// out.
TEST(Lookahead, DrawsWeightsBackToTheirAverage) {
  constexpr int kUpdates = 11, kEvery = 3;
  constexpr double kKeep = 0.9;
  constexpr std::size_t kCount = 40'000;
  Parameter parameter;
  parameter.spec.role = Role::weight;
  parameter.end = kCount;
  for (const bool in_backward : {false, true}) {
    std::vector<float> values(kCount);
    const std::vector<float> gradients(kCount, -1.0f);
    for (std::size_t i = 0; i < kCount; ++i) values[i] = float(i % 7);
    const auto optimizer =
        with_lookahead({.every = kEvery, .keep = kKeep, .updates = kUpdates},
                       make_optimizer({}, {&parameter, 1}, values, gradients), values);
    double expected = values[6], slow = expected;
    for (int update = 1; update <= kUpdates; ++update) {
      if (in_backward) {
        WeightUpdate* move = optimizer->in_backward(1, update);
        move->apply(values.data(), std::span(gradients).first(20));
        move->apply(values.data() + 20, std::span(gradients).subspan(20));
      } else {
        optimizer->update(0, 16, 1, update);
        optimizer->update(16, kCount, 1, update);
      }
      expected += 1;
      if (update % kEvery == 0 || update == kUpdates) {
        const double kept = std::pow(kKeep, kEvery) * std::pow(double(update) / kUpdates, 3);
        slow = kept * slow + (1 - kept) * expected;
        expected = slow;
      }
      for (const std::size_t i : {std::size_t(6), std::size_t(16), kCount - 1})
        ASSERT_NEAR(values[i], expected - 6 + double(i % 7), 1e-5) << update << " " << i;
    }
    EXPECT_LT(expected, 6 + kUpdates - 1) << "nothing was held back: this test shows nothing";
    ASSERT_EQ(optimizer->state().back().first, "slow");
    EXPECT_EQ(optimizer->state().back().second[6], values[6]) << "the average itself";
  }
}

}  // namespace
}  // namespace convoy
