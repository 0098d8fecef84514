#include "sync/shared_strategy.h"

#include <gtest/gtest.h>

#include "world/inproc/inproc.h"

namespace convoy {
namespace {

constexpr std::size_t kCount = 40;  // not a multiple of a cache line

// What three workers' gradients of rank + 1 make of weights that are all 10, with a rate of 1.
std::vector<float> after_two_steps(int vetoed_step) {
  std::vector<float> weights(kCount, 10.0f);
  run_inproc(3, {}, [&](World world) {
    CommTask comm(world, {});
    HostMemory& memory = *world.transport.host_memory();
    std::span<float> gradients;
    comm.run([&](Communicator&) {
      gradients = {reinterpret_cast<float*>(memory.allocate(kCount * sizeof(float)).data()),
                   kCount};
    });
    Parameter parameter;
    parameter.end = kCount;
    const auto optimizer =
        make_optimizer({.kind = "sgd"}, std::span(&parameter, 1), weights, gradients);
    SharedStrategy strategy(comm, memory, *optimizer, gradients);
    const Bucket all{.id = 0, .begin = 0, .end = kCount};
    for (int step = 0; step < 2; ++step) {
      std::fill(gradients.begin(), gradients.end(), float(comm.rank() + 1));
      strategy.bucket_ready(all);
      if (step == vetoed_step && comm.rank() == 1) strategy.veto();
      strategy.end_step({.rate = 1, .update = step + 1}, {});
      strategy.await(all);
      strategy.apply(all);
      strategy.await(all);  // a second time in a step: nothing
      strategy.apply(all);
    }
    comm.close(10);
  });
  return weights;
}

TEST(SharedStrategy, EveryPartIsUpdatedOnceByTheSumOfAll) {
  EXPECT_EQ(after_two_steps(-1), std::vector<float>(kCount, 10.0f - 2 * (1 + 2 + 3)));
}

TEST(SharedStrategy, NobodyMovesWeightsInAStepThatOneVetoes) {
  EXPECT_EQ(after_two_steps(0), std::vector<float>(kCount, 10.0f - (1 + 2 + 3)));
  EXPECT_EQ(after_two_steps(1), std::vector<float>(kCount, 10.0f - (1 + 2 + 3)));
}

}  // namespace
}  // namespace convoy
