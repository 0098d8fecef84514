// Bits. The bf16 family's results do not depend on the number of threads: the same training on a
// machine with more cores gives the same weights.
#include <gtest/gtest.h>

#include "nn/layer_cases.h"
#include "nn/model_test_support.h"
#include "nn/zoo.h"

namespace convoy {
namespace {

// All that a step computes, as the bits of one list of numbers.
std::vector<float> step_with(const Network& network, int batch, int threads) {
  Model model(network, {.batch = batch, .precision = Precision::bf16, .threads = threads});
  testing::shake(model.parameters());
  model.forward(testing::random_batch(network, batch));
  model.backward();
  std::vector<float> all(model.logits().begin(), model.logits().end());
  const auto append = [&](const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
  append(model.parameters().gradients());
  for (const Buffer& buffer : model.parameters().buffers()) append(buffer.values);
  return all;
}

void expect_same_bits(const Network& network, const std::vector<int>& batches) {
  for (int batch : batches) {
    const std::vector<float> one = step_with(network, batch, 1);
    for (int threads : {2, 3, 5})
      EXPECT_TRUE(step_with(network, batch, threads) == one)
          << network.name() << ", batch " << batch << ", " << threads << " threads";
  }
}

TEST(Threads, SameBitsForEveryLayer) {
  for (const testing::Case& one : testing::layer_cases()) {
    SCOPED_TRACE(one.name);
    expect_same_bits(one.network, {5, 70});
  }
}

TEST(Threads, SlowSameBitsForResnet18) {
  expect_same_bits(make_network("resnet18", {3, 16, 16}, 10), {33});
}

TEST(Threads, SlowSameBitsForTheZoo) {
  for (const char* name : {"resnet50", "inception_v1", "alexnet"})
    expect_same_bits(make_network(name, {3, 65, 65}, 10), {9});
  expect_same_bits(make_network("mnist_cnn", {1, 28, 28}, 10), {64, 100});
  expect_same_bits(make_network("airbench", {3, 32, 32}, 10), {100});
}

// Without a timer deciding, f32 repeats its bits too, given the number of threads.
TEST(Threads, FixedAlgorithmsRepeatTheirBits) {
  const Network network = make_network("resnet18", {3, 16, 16}, 10);
  const Batch batch = testing::random_batch(network, 9);
  std::vector<std::string> digests;
  for (int run = 0; run < 2; ++run) {
    // Made for other batches, as after a resize.
    Model model(network, {.batch = run == 0 ? 9 : 20, .threads = 1, .fixed_algorithms = true});
    model.forward(batch);
    model.backward();
    std::span<float> values = model.parameters().values();
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] -= 0.1f * model.parameters().gradients()[i];
    digests.push_back(model.parameters().sha256());
  }
  EXPECT_EQ(digests[0], digests[1]);
}

}  // namespace
}  // namespace convoy
