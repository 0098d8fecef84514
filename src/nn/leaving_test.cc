// Passes that layers leave to their neighbours (Left in family.h): a step has the same bits as
// without, whoever else reads what is left, and wherever the memory planner puts it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "kernels/amx/family.h"
#include "kernels/parallel.h"
#include "nn/graph.h"
#include "nn/layer_cases.h"
#include "nn/model_test_support.h"

namespace convoy {
namespace {

Convolution conv(int channels, int kernel = 3, int stride = 1) {
  return {.channels = channels,
          .kernel = kernel,
          .stride = stride,
          .padding = kernel / 2,
          .bias = false};
}

Network finished(Network network) {
  network.then("last.relu", Relu{});
  network.then("pool", AdaptiveAveragePool{});
  network.then("fc", Dense{.features = 4});
  return network;
}

std::vector<testing::Case> cases() {
  const Shape image{3, 12, 10};
  std::vector<testing::Case> list = testing::layer_cases();

  // Its norm and the sum behind that read the convolution's output.
  Network added("added", image);
  added.then("stem", conv(40));
  const NodeId before = added.then("conv", conv(40));
  const NodeId norm = added.then("bn", BatchNorm{});
  added.add("add", Add{}, {norm, before});
  list.push_back({"norm_added_to_its_input", finished(added)});

  // A pool reads the convolution's output as well.
  Network pooled("pooled", image);
  pooled.then("stem", conv(40));
  const NodeId both = pooled.then("conv", conv(40));
  const NodeId left = pooled.then("bn", BatchNorm{});
  const NodeId right = pooled.add("side", MaxPool{.kernel = 3, .stride = 1, .padding = 1}, {both});
  pooled.add("concat", Concat{}, {left, right});
  pooled.then("conv2", conv(32));
  list.push_back({"norm_and_pool_read", finished(pooled)});

  // A convolution that reads something else comes behind the norm.
  Network shortcut("shortcut", image);
  shortcut.then("stem", conv(32));
  shortcut.then("stem.bn", BatchNorm{});
  const NodeId start = shortcut.then("stem.relu", Relu{});
  shortcut.then("conv1", conv(64, 3, 2));
  shortcut.then("bn1", BatchNorm{});
  shortcut.then("relu1", Relu{});
  shortcut.then("conv2", conv(64));
  const NodeId straight = shortcut.then("bn2", BatchNorm{});
  shortcut.add("down", conv(64, 1, 2), {start});
  const NodeId down = shortcut.then("down.bn", BatchNorm{});
  shortcut.add("sum", Add{}, {straight, down});
  list.push_back({"downsampling_block", finished(shortcut)});

  // Maps of several chunks for each thread, and weights larger than the map.
  list.push_back({"large_map", testing::around({3, 28, 28}, 64,
                                               {BatchNorm{}, Relu{}, conv(64), BatchNorm{}, Relu{},
                                                conv(32, 1), BatchNorm{}})});
  list.push_back(
      {"large_weights",
       testing::around({3, 4, 4}, 256, {BatchNorm{}, Relu{}, conv(256), BatchNorm{}, Relu{}})});
  return list;
}

// All that a step computes. What was not written is NaN.
std::vector<float> step(const Network& network, int batch, bool leaving) {
  const auto family = amx_avx2::make_family();
  Parameters parameters(network, *family, batch);
  parameters.initialize(network, 3);
  testing::shake(parameters);
  Graph graph(network, parameters, *family,
              {.batch = batch, .tuning_batch = batch, .leaving = leaving});
  const std::size_t bytes = (graph.arena_bytes() + 63) / 64 * 64;
  auto* arena = static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  std::memset(arena, 0xff, bytes);
  graph.forward(testing::random_batch(network, batch), arena, {}, 0);
  graph.backward(arena, {}, nullptr);
  std::free(arena);
  std::vector<float> all(graph.logits().begin(), graph.logits().end());
  const auto gradients = parameters.gradients();
  all.insert(all.end(), gradients.begin(), gradients.end());
  return all;
}

class Leaving : public ::testing::TestWithParam<testing::Case> {};

TEST_P(Leaving, ChangesNoBit) {
  const Network network = without_dropout(GetParam().network);
  for (const int batch : {5, 40}) {
    set_threads(1);
    const std::vector<float> without = step(network, batch, false);
    for (const int threads : {1, 3}) {
      set_threads(threads);
      EXPECT_TRUE(step(network, batch, true) == without) << batch << ", " << threads << " threads";
    }
  }
  set_threads(1);
}

INSTANTIATE_TEST_SUITE_P(Networks, Leaving, ::testing::ValuesIn(cases()),
                         [](const auto& named) { return named.param.name; });

}  // namespace
}  // namespace convoy
