#include "train/pulse.h"

#include <gtest/gtest.h>

#include "world/inproc/inproc.h"

namespace convoy {
namespace {

TEST(Pulse, TellsEverybodyTheSumOfAll) {
  run_inproc(3, {}, [](World world) {
    Workers workers(world, {});
    PulseExchange exchange(workers);
    PulseSource own;
    own.add({.loss_sum = 0.5, .correct = 2, .samples = 4});
    own.failed = workers.rank() > 0;
    exchange.post(own);
    const Pulse pulse = exchange.collect();
    EXPECT_EQ(pulse.loss_sum, 1.5);
    EXPECT_EQ(pulse.correct, 6);
    EXPECT_EQ(pulse.samples, 12);
    EXPECT_EQ(pulse.failed, 1);
    EXPECT_FALSE(pulse.stop);
    workers.close();
  });
}

// A loss may be huge before it is no number.
TEST(Pulse, AHugeLossDoesNotBecomeNegative) {
  run_inproc(2, {}, [](World world) {
    Workers workers(world, {});
    PulseExchange exchange(workers);
    PulseSource own;
    for (int step = 0; step < 1000; ++step) own.add({.loss_sum = 1e30, .correct = 0, .samples = 4});
    exchange.post(own);
    EXPECT_GT(exchange.collect().loss_sum, 1e6);
    workers.close();
  });
}

}  // namespace
}  // namespace convoy
