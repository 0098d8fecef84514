#include "sync/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "world/inproc/inproc.h"
#include "world/sim/sim.h"

namespace convoy {
namespace {

// A clock that started at another time and runs at another speed.
class OtherClock final : public Runtime {
 public:
  OtherClock(Runtime& inner, double offset_s, double drift)
      : inner_(inner), offset_s_(offset_s), drift_(drift) {}
  double now_s() const override { return inner_.now_s() * (1 + drift_) + offset_s_; }
  void sleep_s(double seconds) override { inner_.sleep_s(seconds); }
  void compute_s(double seconds) override { inner_.compute_s(seconds); }
  std::unique_ptr<Task> spawn(std::string name, std::function<void()> body) override {
    return inner_.spawn(std::move(name), std::move(body));
  }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }

 private:
  Runtime& inner_;
  double offset_s_, drift_;
};

struct Trial {
  Cluster cluster;
  SimOptions options = {};
  int steps = 50;
  double drift = 0;        // of every clock but the first, times its rank
  double offset_s = 0;     // likewise
  double compute_s = 0.1;  // of a step
  double jitter_s = 0;     // by which steps of a rank differ
};

// Steps of computation that end with an all-reduce; what rank 0 finds, once in each epoch.
std::vector<std::vector<Blame>> blames_of(const Trial& trial, int epochs = 1) {
  std::vector<std::vector<Blame>> found;
  std::map<int, std::vector<double>> elsewhere;
  run_sim(trial.cluster, trial.options, [&](World world) {
    const int me = world.transport.rank();
    OtherClock clock(world.runtime, me * trial.offset_s, me * trial.drift);
    Communicator communicator(clock, world.transport, {.algorithm = "ring"});
    Arrivals arrivals(communicator);
    std::vector<float> values(1000);
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (int step = 0; step < trial.steps; ++step) {
        clock.compute_s(trial.compute_s + trial.jitter_s * ((step * 7 + me * 3) % 5));
        arrivals.stamp(clock.now_s());
        communicator.all_reduce(values);
      }
      const std::vector<Blame> blames = arrivals.settle(communicator);
      if (me == 0) found.push_back(blames);
      for (const Blame& blame : blames)
        for (const double value : {blame.last_share, blame.cost_s, blame.step_s})
          elsewhere[me].push_back(value);
      clock.compute_s(3);  // an evaluation, which is no part of a step
      communicator.barrier();
    }
    communicator.barrier();
    world.transport.close(10);
  });
  for (const auto& [rank, values] : elsewhere) EXPECT_EQ(values, elsewhere[0]) << rank;
  return found;
}

TEST(ArrivalsTest, TheSlowRankIsNamed) {
  const auto found = blames_of({.cluster = {.ranks = 4, .speed = {1, 1, 0.8, 1}}, .steps = 60}, 2);
  ASSERT_EQ(found.size(), 2u);
  for (const std::vector<Blame>& blames : found) {
    ASSERT_EQ(blames.size(), 4u);
    EXPECT_EQ(blames[2].rank, 2);
    EXPECT_EQ(blames[2].steps, 60u);
    EXPECT_EQ(blames[2].last_share, 1);
    EXPECT_NEAR(blames[2].cost_s, 0.025, 1e-3);
    EXPECT_NEAR(blames[2].step_s, 0.1254, 1e-3);
    EXPECT_NEAR(blames[2].step_share, 0.2, 0.01);
    EXPECT_EQ(blames[1].last_share, 0);
    EXPECT_EQ(blames[1].cost_s, 0);
    EXPECT_EQ(blame_line(blames),
              "rank 2 arrives last in 100 % of steps, costs 25 ms each (20 % of the step)");
  }
}

TEST(ArrivalsTest, ClocksThatDisagreeDoNotMatter) {
  const Trial same{.cluster = {.ranks = 3, .speed = {1, 0.9, 1}}, .steps = 40};
  Trial other = same;
  other.offset_s = -1234.5;
  other.drift = 20e-6;  // in 5 s: 0.1 ms
  const auto expected = blames_of(same, 3), found = blames_of(other, 3);
  for (std::size_t epoch = 0; epoch < 3; ++epoch)
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(found[epoch][rank].last_share, expected[epoch][rank].last_share) << rank;
      EXPECT_NEAR(found[epoch][rank].cost_s, expected[epoch][rank].cost_s, 5e-6) << rank;
      EXPECT_NEAR(found[epoch][rank].step_s, expected[epoch][rank].step_s, 5e-6) << rank;
    }
  EXPECT_EQ(blame_line(found[2]), blame_line(expected[2]));
  EXPECT_NE(blame_line(found[2]).find("rank 1 arrives last"), std::string::npos);
}

TEST(ArrivalsTest, TheSameRunSaysTheSame) {
  const Trial trial{.cluster = {.ranks = 5, .speed = {1, 1, 1, 0.9, 1}}, .jitter_s = 4e-3};
  const auto once = blames_of(trial), again = blames_of(trial);
  for (std::size_t rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(once[0][rank].last_share, again[0][rank].last_share);
    EXPECT_EQ(once[0][rank].cost_s, again[0][rank].cost_s);
  }
}

TEST(ArrivalsTest, NobodyIsBlamedAmongEquals) {
  EXPECT_EQ(blame_line(blames_of({.cluster = {.ranks = 2}, .jitter_s = 5e-3})[0]), "");
  EXPECT_EQ(blame_line(blames_of({.cluster = {.ranks = 4}, .jitter_s = 5e-3})[0]), "");
  // One that is always last, by next to nothing.
  EXPECT_EQ(blame_line(blames_of({.cluster = {.ranks = 3, .speed = {1, 0.98, 1}}})[0]), "");
}

TEST(ArrivalsTest, MoreStepsThanAreGatheredAtOnce) {
  const auto found =
      blames_of({.cluster = {.ranks = 2, .speed = {1, 0.5}}, .steps = 2500, .compute_s = 1e-2});
  EXPECT_EQ(found[0][1].steps, 2500u);
  EXPECT_EQ(found[0][1].last_share, 1);
  EXPECT_NEAR(found[0][1].cost_s, 1e-2, 1e-3);
}

TEST(ArrivalsTest, FewStepsOneRankOrNoContent) {
  const auto none = blames_of({.cluster = {.ranks = 3}, .steps = 0});
  EXPECT_TRUE(none[0].empty());
  const auto one = blames_of({.cluster = {.ranks = 3, .speed = {1, 1, 0.1}}, .steps = 1});
  EXPECT_EQ(one[0][2].last_share, 1);
  EXPECT_EQ(one[0][2].step_s, 0);
  EXPECT_EQ(blame_line(one[0]), "");
  EXPECT_TRUE(blames_of({.cluster = {.ranks = 1}})[0].empty());
  EXPECT_TRUE(blames_of({.cluster = {.ranks = 3}, .options = {.carries_bytes = false}})[0].empty());
  EXPECT_EQ(blame_line({}), "");
}

TEST(ArrivalsTest, TheLineSaysHowMuch) {
  Blame blame{.rank = 7,
              .steps = 100,
              .last_share = 0.96,
              .cost_s = 0.0412,
              .step_s = 0.229,
              .step_share = 0.18};
  std::vector<Blame> blames = {{.rank = 0, .steps = 100, .last_share = 0.04}, {}, blame};
  EXPECT_EQ(blame_line(blames),
            "rank 7 arrives last in 96 % of steps, costs 41 ms each (18 % of the step)");
  blames[2].cost_s = 0.00213;
  EXPECT_EQ(blame_line(blames),
            "rank 7 arrives last in 96 % of steps, costs 2.1 ms each (18 % of the step)");
  blames[2].uncertainty_s = 0.003;  // the clocks alone could explain it
  EXPECT_EQ(blame_line(blames), "");
}

TEST(ArrivalsTest, OffsetsAreFoundWithTheirUncertainty) {
  std::map<int, ClockOffset> offsets;
  run_sim({.ranks = 4, .network = {.latency_s = 3e-4, .bytes_per_s = 1e8}}, {}, [&](World world) {
    OtherClock clock(world.runtime, world.transport.rank() * 100.0, 0);
    Communicator communicator(clock, world.transport);
    offsets[world.transport.rank()] = align_clock(communicator);
    communicator.barrier();
    world.transport.close(10);
  });
  EXPECT_EQ(offsets[0].offset_s, 0);
  EXPECT_EQ(offsets[0].uncertainty_s, 0);
  for (int rank = 1; rank < 4; ++rank) {
    EXPECT_NEAR(offsets[rank].offset_s, -100.0 * rank, 1e-9);
    EXPECT_NEAR(offsets[rank].uncertainty_s, 3e-4, 1e-5);
  }
}

// On real clocks, too: threads share theirs, so that the offset found is within its uncertainty.
TEST(ArrivalsTest, ThreadsHaveOneClock) {
  run_inproc(3, {}, [](World world) {
    Communicator communicator(world.runtime, world.transport);
    const ClockOffset found = align_clock(communicator);
    if (std::abs(found.offset_s) > found.uncertainty_s + 1e-9)
      throw std::runtime_error(fmt::format("offset {}", found.offset_s));
    communicator.barrier();
    world.transport.close(60);
  });
}

}  // namespace
}  // namespace convoy
