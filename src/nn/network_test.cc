#include "nn/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

Shape shape_after(Shape input, Layer layer) {
  Network net("net", input);
  net.then("layer", layer);
  return net.output().shape;
}

TEST(Network, ConvolutionRoundsDown) {
  EXPECT_EQ(shape_after({3, 224, 224},
                        Convolution{.channels = 64, .kernel = 7, .stride = 2, .padding = 3}),
            (Shape{64, 112, 112}));
  EXPECT_EQ(shape_after({3, 10, 7}, Convolution{.channels = 8, .kernel = 3, .stride = 2}),
            (Shape{8, 4, 3}));
}

TEST(Network, PoolingFollowsFloorAndCeil) {
  EXPECT_EQ(shape_after({1, 7, 8}, MaxPool{}), (Shape{1, 3, 4}));
  EXPECT_EQ(shape_after({1, 7, 8}, MaxPool{.ceil_mode = true}), (Shape{1, 4, 4}));
  EXPECT_EQ(shape_after({1, 112, 112}, MaxPool{.kernel = 3, .stride = 2, .ceil_mode = true}),
            (Shape{1, 56, 56}));
  EXPECT_EQ(
      shape_after({1, 7, 7}, MaxPool{.kernel = 3, .stride = 1, .padding = 1, .ceil_mode = true}),
      (Shape{1, 7, 7}));
  // ceil((5 + 2 - 2) / 2) + 1 = 4 windows, but the fourth would start at 6, behind the input and
  // its left padding.
  EXPECT_EQ(shape_after({1, 5, 5},
                        AveragePool{.kernel = 2, .stride = 2, .padding = 1, .ceil_mode = true}),
            (Shape{1, 3, 3}));
  // The second window would start at 3 of 2 pixels.
  EXPECT_EQ(shape_after({1, 2, 2}, MaxPool{.kernel = 1, .stride = 3, .ceil_mode = true}),
            (Shape{1, 1, 1}));
  EXPECT_EQ(shape_after({5, 7, 3}, AdaptiveAveragePool{2, 6}), (Shape{5, 2, 6}));
}

TEST(Network, ConcatAndAddJoinBranches) {
  Network net("net", {4, 6, 6});
  const NodeId a = net.add("a", Convolution{.channels = 8, .kernel = 1}, {0});
  const NodeId b = net.add("b", Convolution{.channels = 8, .kernel = 3, .padding = 1}, {0});
  const NodeId sum = net.add("sum", Add{}, {a, b});
  const NodeId joined = net.add("joined", Concat{}, {a, sum, 0});
  EXPECT_EQ(net.node(sum).shape, (Shape{8, 6, 6}));
  EXPECT_EQ(net.node(joined).shape, (Shape{20, 6, 6}));
  EXPECT_EQ(net.input_shape(net.node(joined), 2), (Shape{4, 6, 6}));
  EXPECT_THAT(
      [&] {
        net.add("bad", Add{}, {a, joined});
      },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("bad (add)"), HasSubstr("8x6x6, 20x6x6"))));
}

TEST(Network, ParametersHaveTorchNamesAndDims) {
  Network net("net", {4, 8, 8});
  net.then("conv", Convolution{.channels = 6, .kernel = 3, .groups = 2});
  net.then("bn", BatchNorm{});
  net.then("plain", Convolution{.channels = 2, .kernel = 1, .bias = false});
  net.then("fc", Dense{.features = 10});
  const auto list = net.parameters();
  ASSERT_EQ(list.size(), 7u);
  EXPECT_EQ(list[0].name, "conv.weight");
  EXPECT_EQ(list[0].dims, (std::vector<std::int64_t>{6, 2, 3, 3}));
  EXPECT_EQ(list[1].name, "conv.bias");
  EXPECT_EQ(list[1].role, Role::bias);
  EXPECT_EQ(list[2].role, Role::norm_weight);
  EXPECT_EQ(list[3].role, Role::norm_bias);
  EXPECT_EQ(list[4].name, "plain.weight");
  EXPECT_EQ(list[5].dims, (std::vector<std::int64_t>{10, 2 * 6 * 6}));
  EXPECT_EQ(list[6].name, "fc.bias");
  EXPECT_EQ(net.parameter_count(), 108u + 6 + 6 + 6 + 12 + 720 + 10);
  EXPECT_EQ(net.forward_flops(), 36.0 * 6 * 2 * 9 + 36.0 * 2 * 6 + 720);
  EXPECT_EQ(net.classes(), 10);
}

TEST(Network, ErrorsNameTheLayerAndTheShapes) {
  EXPECT_THAT(
      [] {
        shape_after({3, 4, 4}, Convolution{.channels = 8, .kernel = 5});
      },
      ThrowsMessage<ConfigError>(
          AllOf(HasSubstr("net with input 3x4x4: layer layer (convolution) cannot take 3x4x4"),
                HasSubstr("5x5"))));
  EXPECT_THROW(shape_after({3, 4, 4}, Convolution{.channels = 8, .kernel = 1, .groups = 2}),
               ConfigError);
  EXPECT_THROW(shape_after({3, 4, 4}, Convolution{.channels = 8, .kernel = 1, .stride = 0}),
               ConfigError);
  EXPECT_THROW(shape_after({3, 1, 4}, MaxPool{}), ConfigError);
  EXPECT_THROW(shape_after({3, 4, 4}, MaxPool{.kernel = 2, .padding = 2}), ConfigError);
  EXPECT_THROW(shape_after({3, 4, 4}, Dense{.features = 0}), ConfigError);
  EXPECT_THROW(shape_after({3, 4, 4}, Dropout{.rate = 1.0f}), ConfigError);
  EXPECT_THROW(shape_after({3, 4, 4}, Input{}), ConfigError);
  EXPECT_THROW(Network("net", {3, 0, 4}), ConfigError);
  Network net("net", {3, 4, 4});
  net.then("relu", Relu{});
  EXPECT_THAT([&] { net.then("relu", Relu{}); },
              ThrowsMessage<ConfigError>(HasSubstr("two layers are named relu")));
}

TEST(Network, FreezesLayersByNameAndPrefix) {
  Network net("net", {3, 8, 8});
  net.then("stem", Convolution{.channels = 4, .kernel = 3});
  net.then("relu", Relu{});
  net.then("layer1.conv", Convolution{.channels = 4, .kernel = 3});
  net.then("layer1.bn", BatchNorm{});
  net.then("layer10", Convolution{.channels = 4, .kernel = 3});
  net.then("fc", Dense{.features = 2});
  const auto frozen = [&] {
    std::string names;
    for (const ParameterSpec& spec : net.parameters())
      if (spec.frozen) names += spec.name + " ";
    return names;
  };
  EXPECT_EQ(frozen(), "");
  EXPECT_EQ(net.reached_by_backward(), std::vector<bool>({0, 1, 1, 1, 1, 1, 1}));
  net.freeze("layer1");
  EXPECT_EQ(frozen(), "layer1.conv.weight layer1.conv.bias layer1.bn.weight layer1.bn.bias ");
  EXPECT_EQ(net.reached_by_backward(), std::vector<bool>({0, 1, 1, 1, 1, 1, 1}));
  net.freeze("stem");
  EXPECT_EQ(net.reached_by_backward(), std::vector<bool>({0, 0, 0, 0, 0, 1, 1}));
  EXPECT_THAT([&] { net.freeze("sten"); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("'sten'"), HasSubstr("stem?"))));
  EXPECT_THROW(net.freeze("relu"), ConfigError);
}

TEST(Layers, EveryKindHasAName) {
  EXPECT_EQ(layer_kind(Convolution{}), "convolution");
  EXPECT_EQ(layer_kind(BatchNorm{}), "batch norm");
  EXPECT_EQ(layer_kind(LocalResponseNorm{}), "local response norm");
}

}  // namespace
}  // namespace convoy
