#include "sync/link_probe.h"

#include <gtest/gtest.h>

#include "world/sim/sim.h"

namespace convoy {
namespace {

std::vector<LinkCurve> probe(const Cluster& cluster) {
  std::vector<LinkCurve> curves;
  run_sim(cluster, {}, [&](World world) {
    Communicator communicator(world.runtime, world.transport);
    auto found = probe_links(communicator, {.most_bytes = 1 << 22, .seconds_per_size = 1e-3});
    communicator.barrier();
    world.transport.close(10);
    if (world.transport.rank() == 0) curves = std::move(found);
  });
  return curves;
}

TEST(LinkProbeTest, TheFitFindsTheLineAlsoWithNoise) {
  std::vector<LinkPoint> points;
  for (std::size_t size : probe_sizes(1 << 26)) {
    const double noise = size % 3 == 0 ? 1.02 : 0.99;
    points.push_back({size, (30e-6 + double(size) / 1.2e8) * noise});
  }
  const LinkFit fit = fit_link(points);
  EXPECT_NEAR(fit.alpha_s, 30e-6, 1e-6);
  EXPECT_NEAR(fit.beta_bytes_per_s, 1.2e8, 3e6);
}

// A shaper lets the first 128 KiB pass at 2 GB/s.
TEST(LinkProbeTest, ABurstThatPassesAtOnceIsNotTheLinksSpeed) {
  std::vector<LinkPoint> points;
  for (std::size_t size : probe_sizes(1 << 24)) {
    const double burst = std::min<double>(double(size), 131072);
    points.push_back({size, 60e-6 + burst / 2e9 + (double(size) - burst) / 1.25e8});
  }
  const LinkFit fit = fit_link(points);
  EXPECT_NEAR(fit.alpha_s, 60e-6, 5e-6);
  EXPECT_NEAR(fit.beta_bytes_per_s, 1.25e8, 0.5e6);
}

TEST(LinkProbeTest, OnePointIsEnoughForALine) {
  const LinkPoint one{1000, 1e-3};
  const LinkFit fit = fit_link({&one, 1});
  EXPECT_NEAR(fit.seconds(1000), 1e-3, 1e-6);
  EXPECT_GT(fit.beta_bytes_per_s, 0);
}

TEST(LinkProbeTest, SizesEndWithTheLargest) {
  EXPECT_EQ(probe_sizes(1), (std::vector<std::size_t>{1}));
  EXPECT_EQ(probe_sizes(20), (std::vector<std::size_t>{1, 4, 16, 20}));
}

TEST(LinkProbeTest, FindsWhatTheSimulatedLinksAre) {
  const auto curves = probe({.ranks = 3, .network = {.latency_s = 40e-6, .bytes_per_s = 1e9}});
  ASSERT_EQ(curves.size(), 6u);
  for (const LinkCurve& curve : curves) {
    EXPECT_NEAR(curve.fit.alpha_s, 40e-6, 2e-6);
    EXPECT_NEAR(curve.fit.beta_bytes_per_s, 1e9, 2e7);
  }
  EXPECT_TRUE(slow_links(curves).empty());
}

TEST(LinkProbeTest, NamesTheSlowLink) {
  const auto curves = probe({.ranks = 4,
                             .network = {.latency_s = 40e-6, .bytes_per_s = 1e9},
                             .wires = {{.host = 1, .peer = 3, .link = {40e-6, 2e8}}}});
  const auto slow = slow_links(curves);
  ASSERT_EQ(slow.size(), 2u);  // both ways
  for (std::size_t place : slow) EXPECT_EQ(curves[place].from + curves[place].to, 4);
}

}  // namespace
}  // namespace convoy
