#include "optim/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace convoy {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kSteps = 100;  // per epoch
constexpr int kEpochs = 10;

double at(const ScheduleOptions& options, std::int64_t step) {
  return learning_rate(options, step, kSteps, kEpochs);
}

TEST(Schedule, ConstantIsConstant) {
  const ScheduleOptions options{.rate = 0.2};
  for (std::int64_t step : {0, 1, 500, 999}) EXPECT_DOUBLE_EQ(at(options, step), 0.2);
}

TEST(Schedule, WarmupIsLinearAndEndsAtTheRate) {
  const ScheduleOptions options{.rate = 0.2, .warmup_epochs = 2};
  EXPECT_DOUBLE_EQ(at(options, 0), 0.2 / 200);
  EXPECT_DOUBLE_EQ(at(options, 99), 0.1);
  EXPECT_DOUBLE_EQ(at(options, 199), 0.2);
  EXPECT_DOUBLE_EQ(at(options, 200), 0.2);
}

TEST(Schedule, StepFallsAtMilestones) {
  const ScheduleOptions options{.kind = "step", .rate = 1, .milestones = {3, 6.5}, .gamma = 0.1};
  EXPECT_DOUBLE_EQ(at(options, 299), 1);
  EXPECT_DOUBLE_EQ(at(options, 300), 0.1);
  EXPECT_DOUBLE_EQ(at(options, 649), 0.1);
  EXPECT_DOUBLE_EQ(at(options, 650), 0.01);
  EXPECT_DOUBLE_EQ(at(options, 999), 0.01);
}

TEST(Schedule, CosineIsRightAtBothEndsAndInTheMiddle) {
  const ScheduleOptions options{.kind = "cosine", .rate = 1, .final_rate = 0.2};
  EXPECT_EQ(at(options, 0), 1);
  EXPECT_EQ(at(options, 999), 0.2);
  EXPECT_NEAR(learning_rate(options, 50, 101, 1), 0.6, 1e-12);
  EXPECT_EQ(at(options, 5000), 0.2);
}

TEST(Schedule, CosineStartsWhereTheWarmupEnds) {
  const ScheduleOptions options{.kind = "cosine", .rate = 1, .warmup_epochs = 1};
  EXPECT_EQ(at(options, 99), 1);
  EXPECT_LT(at(options, 100), 1);
  EXPECT_EQ(at(options, 999), 0);
}

TEST(Schedule, OneCycleRisesAndFalls) {
  const ScheduleOptions options{.kind = "one-cycle", .rate = 1, .final_rate = 0.001};
  EXPECT_DOUBLE_EQ(at(options, 0), 1 / kOneCycleStart);
  EXPECT_DOUBLE_EQ(at(options, 300), 1);  // 0.3 of 999, rounded
  EXPECT_DOUBLE_EQ(at(options, 999), 0.001);
  for (std::int64_t step = 1; step <= 300; ++step)
    EXPECT_GT(at(options, step), at(options, step - 1));
  for (std::int64_t step = 301; step < 1000; ++step)
    EXPECT_LT(at(options, step), at(options, step - 1));
}

TEST(Schedule, TriangleRisesAndFallsInStraightLines) {
  const ScheduleOptions options{.kind = "triangle", .rate = 1, .final_rate = 0.1, .peak_at = 0.5};
  EXPECT_DOUBLE_EQ(learning_rate(options, 0, 101, 1), 1 / kOneCycleStart);
  EXPECT_NEAR(learning_rate(options, 25, 101, 1), (1 + 1 / kOneCycleStart) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(options, 50, 101, 1), 1);
  EXPECT_NEAR(learning_rate(options, 75, 101, 1), 0.55, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(options, 100, 101, 1), 0.1);
}

// No kind but step jumps: neighbouring steps differ by little, wherever warm-up, peak and end meet.
TEST(Schedule, IsContinuous) {
  for (const char* kind : {"constant", "cosine", "one-cycle", "triangle"})
    for (double warmup : {0.0, 0.5, 2.0, 5.0}) {
      const ScheduleOptions options{.kind = kind, .rate = 1, .warmup_epochs = warmup};
      for (std::int64_t step = 1; step < kSteps * kEpochs; ++step)
        ASSERT_NEAR(at(options, step), at(options, step - 1), 0.021)
            << kind << " warm-up " << warmup << " step " << step;
    }
}

TEST(Schedule, SmallestTrainingsHaveAFinitePositiveStart) {
  for (const char* kind : {"constant", "cosine", "one-cycle"})
    for (double warmup : {0.0, 1.0, 50.0})
      for (std::int64_t steps : {1, 2, 3}) {
        const ScheduleOptions options{.kind = kind, .rate = 1, .warmup_epochs = warmup};
        const double rate = learning_rate(options, 0, steps, 1);
        EXPECT_GT(rate, 0) << kind << warmup << " " << steps;
        EXPECT_LE(rate, 1);
      }
}

TEST(Schedule, RefusesWhatCannotBe) {
  const auto refuses = [](const ScheduleOptions& options, const char* text) {
    EXPECT_THAT([&] { check_schedule(options); }, ThrowsMessage<ConfigError>(HasSubstr(text)));
  };
  refuses({.kind = "cosin"}, "did you mean 'cosine'");
  refuses({.kind = "one_cycle"}, "did you mean 'one-cycle'");
  refuses({.rate = 0}, "learning rate");
  refuses({.rate = std::numeric_limits<double>::infinity()}, "learning rate");
  refuses({.warmup_epochs = -1}, "warm-up");
  refuses({.kind = "step"}, "milestones");
  refuses({.kind = "step", .milestones = {-2}}, "milestone");
  refuses({.gamma = 0}, "gamma");
  refuses({.final_rate = NAN}, "final rate");
  refuses({.kind = "one-cycle", .peak_at = 1.5}, "peak");
  EXPECT_NO_THROW(check_schedule({}));
}

TEST(Schedule, RateScalesWithTheBatch) {
  EXPECT_DOUBLE_EQ(scaled_rate(0.1, 1024, 256), 0.4);
  EXPECT_DOUBLE_EQ(scaled_rate(0.1, 64, 256), 0.025);
  EXPECT_THROW(scaled_rate(0.1, 64, 0), ConfigError);
}

}  // namespace
}  // namespace convoy
