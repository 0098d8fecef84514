#include "sync/bucket_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace convoy {
namespace {

constexpr std::size_t kMiB = (1 << 20) / sizeof(float);

// Ten layers of 1 MiB, the last layer first, that take 10 ms backward and 5 ms forward each.
std::vector<LayerRange> ten_layers() {
  std::vector<LayerRange> layers;
  for (int i = 0; i < 10; ++i)
    layers.push_back({10 - i, std::size_t(i) * kMiB, std::size_t(i + 1) * kMiB});
  return layers;
}

StepTimes ten_times(double per_mib_s) {
  StepTimes times{.layers = {},
                  .forward_s = 0.05,
                  .backward_s = 0.1,
                  .alpha_s = 1e-4,
                  .per_byte_s = per_mib_s / (1 << 20)};
  for (int i = 0; i < 10; ++i)
    times.layers.push_back({.ready_s = 0.01 * (i + 1), .needed_s = 0.005 * (9 - i)});
  return times;
}

void expect_whole(const BucketPlan& plan, std::size_t arena) {
  std::size_t covered = 0;
  for (const Bucket& bucket : plan.buckets) {
    EXPECT_EQ(bucket.begin, covered);
    covered = bucket.end;
  }
  EXPECT_EQ(covered, arena);
  std::vector<Slice> slices = plan.order;
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
  covered = 0;
  for (const Slice& slice : slices) {
    EXPECT_EQ(slice.begin, covered);
    EXPECT_GE(slice.begin, plan.buckets[std::size_t(slice.bucket)].begin);
    EXPECT_LE(slice.end, plan.buckets[std::size_t(slice.bucket)].end);
    covered = slice.end;
  }
  EXPECT_EQ(covered, arena);
}

TEST(BucketPlan, CutsTheArenaIntoWholeLayers) {
  const auto layers = ten_layers();
  const BucketPlan plan = simple_plan(layers, 3 << 20);
  EXPECT_EQ(plan.buckets.size(), 4u);
  expect_whole(plan, 10 * kMiB);
  EXPECT_EQ(simple_plan(layers, ~std::size_t{0}).buckets.size(), 1u);
  EXPECT_EQ(simple_plan(layers, 1).buckets.size(), 10u);
}

TEST(BucketPlan, HidesAFastLinkBehindBackward) {
  const auto layers = ten_layers();
  const BucketPlan plan = best_plan(layers, ten_times(0.001));
  expect_whole(plan, 10 * kMiB);
  EXPECT_GT(plan.buckets.size(), 2u);
  // Only what the first layer sends after backward can delay the next forward.
  EXPECT_LT(plan.step_s, 0.15 + 0.003);
}

TEST(BucketPlan, LetsTheFirstLayerOvertakeOnASlowLink) {
  const auto layers = ten_layers();
  const BucketPlan plan = best_plan(layers, ten_times(0.013));
  expect_whole(plan, 10 * kMiB);
  const auto place = [&](std::size_t begin) {
    for (std::size_t i = 0; i < plan.order.size(); ++i)
      if (plan.order[i].begin <= begin && begin < plan.order[i].end) return i;
    return plan.order.size();
  };
  EXPECT_LT(place(9 * kMiB), plan.order.size() - 1);  // the first layer is not last
  const double as_they_come = 0.01 + 10 * 0.0131 + 0.05;
  EXPECT_LT(plan.step_s, as_they_come - 0.005);
}

}  // namespace
}  // namespace convoy
