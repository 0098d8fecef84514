#include "nn/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/rng.h"
#include "nn/zoo.h"

namespace convoy {
namespace {

using Numbers = std::vector<double>;

Numbers random_numbers(std::size_t count, std::uint64_t seed) {
  Rng rng(seed, Purpose::test);
  Numbers numbers(count);
  for (double& v : numbers) v = rng.normal();
  return numbers;
}

std::vector<std::int32_t> some_labels(int batch, int classes) {
  std::vector<std::int32_t> labels;
  for (int n = 0; n < batch; ++n) labels.push_back((n * 7 + 1) % classes);
  return labels;
}

// A network under test with random numbers everywhere, and its loss as a function of them.
struct Trial {
  Network net;
  int batch;
  double label_smoothing = 0;
  bool training = true;
  ReferenceGraph graph{net, batch};
  Numbers images = random_numbers(net.input_shape().count() * batch, 1);
  std::vector<std::int32_t> labels = some_labels(batch, net.classes());

  void randomize() {
    std::uint64_t seed = 2;
    for (const ParameterSpec& spec : net.parameters()) {
      const std::size_t fan_in = spec.count() / spec.dims[0];
      const bool is_matrix = spec.dims.size() > 1;
      Numbers& numbers = graph.numbers(spec.name) = random_numbers(spec.count(), seed++);
      for (double& v : numbers)
        v = is_matrix ? v * std::sqrt(2.0 / fan_in) : 0.3 * v + (spec.role == Role::norm_weight);
    }
    for (const Node& node : net.nodes())
      if (std::holds_alternative<BatchNorm>(node.layer))
        for (double& v : graph.numbers(node.name + ".running_var"))
          v = 0.5 + 0.01 * double(seed++ % 50);
  }

  double mean_loss() {
    return graph.forward(images, labels, label_smoothing, training).loss_sum / batch;
  }
};

// The derivative of the loss by `number`, by central differences.
double slope(Trial& trial, double& number) {
  const double step = 1e-5, kept = number;
  number = kept + step;
  const double above = trial.mean_loss();
  number = kept - step;
  const double below = trial.mean_loss();
  number = kept;
  return (above - below) / (2 * step);
}

void check_gradients(Trial& trial) {
  trial.randomize();
  trial.mean_loss();
  trial.graph.backward();
  const Numbers input_gradient = trial.graph.value_gradient(0);
  for (std::size_t i = 0; i < trial.images.size(); ++i)
    ASSERT_NEAR(input_gradient[i], slope(trial, trial.images[i]), 1e-8) << "input " << i;
  for (const ParameterSpec& spec : trial.net.parameters()) {
    const Numbers gradient = trial.graph.gradient(spec.name);
    Numbers& numbers = trial.graph.numbers(spec.name);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      ASSERT_NEAR(gradient[i], slope(trial, numbers[i]), 1e-8) << spec.name << " " << i;
  }
}

struct LayerCase {
  std::string name;
  Shape input;
  Layer layer;
};

class ReferenceGradient : public testing::TestWithParam<LayerCase> {};

// The layer under test stands between a convolution and a dense layer, so that gradients pass
// through it.
TEST_P(ReferenceGradient, AgreesWithCentralDifferences) {
  Network net("net", GetParam().input);
  net.then("before", Convolution{.channels = 4, .kernel = 1});
  net.then("layer", GetParam().layer);
  net.then("fc", Dense{.features = 3});
  Trial trial{.net = net, .batch = 3};
  check_gradients(trial);
}

INSTANTIATE_TEST_SUITE_P(
    Layers, ReferenceGradient,
    testing::Values(
        LayerCase{"Convolution", {2, 5, 4}, Convolution{.channels = 3, .kernel = 3}},
        LayerCase{"ConvolutionStridePadding",
                  {2, 6, 5},
                  Convolution{.channels = 3, .kernel = 3, .stride = 2, .padding = 1}},
        LayerCase{
            "ConvolutionGroups",
            {3, 4, 4},
            Convolution{.channels = 6, .kernel = 3, .padding = 1, .groups = 2, .bias = false}},
        LayerCase{"ConvolutionDepthwiseRelu",
                  {3, 4, 4},
                  Convolution{.channels = 4, .kernel = 2, .groups = 4, .relu = true}},
        LayerCase{"BatchNorm", {2, 3, 3}, BatchNorm{}},
        LayerCase{"BatchNormRelu", {2, 3, 3}, BatchNorm{.epsilon = 0.001f, .relu = true}},
        LayerCase{"Relu", {2, 3, 3}, Relu{}}, LayerCase{"MaxPool", {2, 5, 6}, MaxPool{}},
        LayerCase{"MaxPoolCeil", {2, 6, 5}, MaxPool{.kernel = 3, .stride = 2, .ceil_mode = true}},
        LayerCase{"MaxPoolPaddingRelu",
                  {2, 5, 5},
                  MaxPool{.kernel = 3, .stride = 1, .padding = 1, .ceil_mode = true, .relu = true}},
        LayerCase{"AveragePool", {2, 4, 5}, AveragePool{}},
        LayerCase{"AveragePoolCountPadding",
                  {2, 6, 5},
                  AveragePool{.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true}},
        LayerCase{"AveragePoolWithoutPadding",
                  {2, 5, 5},
                  AveragePool{.kernel = 3, .stride = 2, .padding = 1, .count_padding = false}},
        LayerCase{"GlobalAveragePool", {2, 4, 5}, AdaptiveAveragePool{}},
        LayerCase{"AdaptiveAveragePool", {2, 7, 5}, AdaptiveAveragePool{3, 2}},
        LayerCase{"AdaptiveAveragePoolEnlarging", {2, 2, 3}, AdaptiveAveragePool{3, 4}},
        LayerCase{"Dense", {2, 3, 3}, Dense{.features = 5}},
        LayerCase{
            "DenseReluWithoutBias", {2, 3, 3}, Dense{.features = 5, .bias = false, .relu = true}},
        LayerCase{"Dropout", {2, 3, 3}, Dropout{.rate = 0}},
        LayerCase{"LocalResponseNorm",
                  {2, 3, 2},
                  LocalResponseNorm{.size = 3, .alpha = 0.5f, .beta = 0.75f, .k = 2}},
        LayerCase{"LocalResponseNormEven",
                  {2, 3, 2},
                  LocalResponseNorm{.size = 2, .alpha = 0.5f, .beta = 0.5f, .k = 1}}),
    [](const auto& it) { return it.param.name; });

Network branching(bool folded) {
  Network net("net", {2, 4, 4});
  const NodeId a = net.add("a", Convolution{.channels = 3, .kernel = 3, .padding = 1}, {0});
  const NodeId b = net.add("b", Convolution{.channels = 3, .kernel = 1}, {0});
  net.add("sum", Add{.relu = folded}, {a, b});
  if (!folded) net.then("sum.relu", Relu{});
  const NodeId sum = net.output().id;
  net.add("joined", Concat{}, {a, sum, 0, sum});
  net.then("fc", Dense{.features = 4});
  return net;
}

TEST(Reference, GradientsOfBranchesAddUp) {
  for (const bool folded : {false, true}) {
    Trial trial{.net = branching(folded), .batch = 2};
    check_gradients(trial);
  }
}

TEST(Reference, GradientWithLabelSmoothing) {
  Trial trial{.net = branching(false), .batch = 2, .label_smoothing = 0.1};
  check_gradients(trial);
}

TEST(Reference, GradientWithRunningStatistics) {
  Network net("net", {2, 3, 3});
  net.then("bn", BatchNorm{});
  net.then("fc", Dense{.features = 3});
  Trial trial{.net = net, .batch = 2, .training = false};
  check_gradients(trial);
}

TEST(Reference, GradientWithDropout) {
  Network net("net", {2, 3, 3});
  net.then("dropout", Dropout{.rate = 0.5f});
  net.then("fc", Dense{.features = 3});
  Trial trial{.net = net, .batch = 2};
  trial.graph.set_dropout(
      [](const Node&, int sample, std::size_t i) { return (sample + i) % 3 ? 2.0 : 0.0; });
  check_gradients(trial);
  EXPECT_EQ(trial.graph.value(1)[0], 0);
  EXPECT_EQ(trial.graph.value(1)[1], 2 * trial.images[1]);
  trial.training = false;
  trial.mean_loss();
  EXPECT_EQ(trial.graph.value(1), trial.images);
}

// One layer on one sample, as numbers.
Numbers output_of(Shape input, Layer layer, const Numbers& images) {
  Network net("net", input);
  net.then("layer", layer);
  ReferenceGraph graph(net, 1);
  const std::vector<std::int32_t> labels{0};
  graph.forward(images, labels);
  return graph.logits();
}

TEST(Reference, PoolsKnownByHand) {
  const Numbers image{1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(output_of({1, 3, 3}, MaxPool{.ceil_mode = true}, image), (Numbers{5, 6, 8, 9}));
  // Windows behind the input are cut: they average 3 and 6, then 7 and 8, then 9 alone.
  EXPECT_EQ(output_of({1, 3, 3}, AveragePool{.ceil_mode = true}, image), (Numbers{3, 4.5, 7.5, 9}));
  const AveragePool padded{.kernel = 2, .stride = 2, .padding = 1};
  EXPECT_EQ(output_of({1, 3, 3}, padded, image), (Numbers{0.25, 1.25, 2.75, 7}));
  AveragePool uncounted = padded;
  uncounted.count_padding = false;
  EXPECT_EQ(output_of({1, 3, 3}, uncounted, image), (Numbers{1, 2.5, 5.5, 7}));
  EXPECT_EQ(output_of({1, 3, 3}, AdaptiveAveragePool{2, 2}, image), (Numbers{3, 4, 6, 7}));
  EXPECT_EQ(output_of({1, 1, 2}, AdaptiveAveragePool{1, 4}, {1, 3}), (Numbers{1, 1, 3, 3}));
  EXPECT_EQ(output_of({1, 2, 2}, MaxPool{.kernel = 3, .stride = 1, .padding = 1}, {-4, -3, -2, -1}),
            (Numbers{-1, -1, -1, -1}));
}

TEST(Reference, LocalResponseNormKnownByHand) {
  const Numbers out =
      output_of({3, 1, 1}, LocalResponseNorm{.size = 2, .alpha = 2, .beta = 1, .k = 1}, {1, 2, 3});
  EXPECT_DOUBLE_EQ(out[0], 1.0 / 2);   // 1 + 1
  EXPECT_DOUBLE_EQ(out[1], 2.0 / 6);   // 1 + 1 + 4
  EXPECT_DOUBLE_EQ(out[2], 3.0 / 14);  // 1 + 4 + 9
}

TEST(Reference, ConvolutionKnownByHand) {
  Network net("net", {2, 2, 2});
  net.then("conv", Convolution{.channels = 2, .kernel = 2, .padding = 1, .groups = 2});
  ReferenceGraph graph(net, 1);
  const std::vector<float> weight{1, 2, 3, 4, 0, 0, 0, 1}, bias{0, 10};
  graph.set("conv.weight", weight);
  graph.set("conv.bias", bias);
  const std::vector<float> images{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<std::int32_t> labels{0};
  graph.forward(images, labels);
  EXPECT_EQ(graph.logits(), (Numbers{4, 11, 6, 14, 30, 14, 6, 11, 4,  //
                                     15, 16, 10, 17, 18, 10, 10, 10, 10}));
}

TEST(Reference, RunningStatisticsFollowPyTorch) {
  Network net("net", {1, 1, 2});
  net.then("bn", BatchNorm{});
  ReferenceGraph graph(net, 2);
  const std::vector<float> images{1, 2, 3, 6}, one{1};
  const std::vector<std::int32_t> labels{0, 1};
  graph.set("bn.weight", one);
  graph.forward(images, labels);
  // Mean 3, biased variance 14 / 4, unbiased 14 / 3.
  EXPECT_NEAR(graph.numbers("bn.running_mean")[0], 0.3, 1e-8);
  EXPECT_NEAR(graph.numbers("bn.running_var")[0], 0.9 + 0.1 * 14 / 3, 1e-7);
  EXPECT_NEAR(graph.logits()[3], 3 / std::sqrt(3.5 + 1e-5), 1e-9);
  const double mean = graph.numbers("bn.running_mean")[0];
  graph.forward(images, labels, 0, false);
  EXPECT_EQ(graph.numbers("bn.running_mean")[0], mean);
  EXPECT_NEAR(graph.logits()[0], (1 - 0.3) / std::sqrt(0.9 + 1.4 / 3 + 1e-5), 1e-7);
}

TEST(Reference, LossKnownByHand) {
  Network net("net", {2, 1, 1});
  net.then("relu", Relu{});
  ReferenceGraph graph(net, 2);
  const std::vector<float> images{1000, 0, 0, 0};
  const std::vector<std::int32_t> labels{0, 1};
  auto outcome = graph.forward(images, labels);
  EXPECT_NEAR(outcome.loss_sum, std::log(2.0), 1e-12);
  EXPECT_EQ(outcome.correct, 1);
  outcome = graph.forward(images, labels, 0.1);
  EXPECT_NEAR(outcome.loss_sum, 0.1 * 500 + std::log(2.0), 1e-9);
}

TEST(Reference, WithoutDropoutChangesNothingElse) {
  const Network net = make_network("alexnet", {3, 32, 32}, 10);
  const Network copy = without_dropout(net);
  ASSERT_EQ(copy.nodes().size(), net.nodes().size());
  EXPECT_EQ(copy.parameter_count(), net.parameter_count());
  for (const Node& node : copy.nodes()) {
    EXPECT_EQ(node.name, net.node(node.id).name);
    if (const auto* dropout = std::get_if<Dropout>(&node.layer)) {
      EXPECT_EQ(dropout->rate, 0);
    }
  }
}

// A whole network: the loss moves along the gradient as fast as the gradient says.
void check_direction(const std::string& name, Shape input) {
  Trial trial{.net = without_dropout(make_network(name, input, 10)), .batch = 2};
  trial.randomize();
  trial.mean_loss();
  trial.graph.backward();
  double squares = 0;
  std::map<std::string, Numbers> gradients;
  for (const ParameterSpec& spec : trial.net.parameters()) {
    gradients[spec.name] = trial.graph.gradient(spec.name);
    for (const double g : gradients[spec.name]) squares += g * g;
  }
  const auto move = [&](double distance) {
    for (const auto& [parameter, gradient] : gradients) {
      Numbers& numbers = trial.graph.numbers(parameter);
      for (std::size_t i = 0; i < gradient.size(); ++i) numbers[i] += distance * gradient[i];
    }
  };
  // So short that hardly a ReLU changes sides on the way.
  const double step = 1e-8 / std::sqrt(squares);
  move(step);
  const double above = trial.mean_loss();
  move(-2 * step);
  const double below = trial.mean_loss();
  EXPECT_NEAR((above - below) / (2 * step) / squares, 1, 1e-5) << name;
}

TEST(Reference, WholeNetworkHasRightGradients) { check_direction("mnist_cnn", {1, 28, 28}); }

TEST(Reference, SlowWholeNetworksHaveRightGradients) {
  check_direction("inception_v1", {3, 16, 16});
  check_direction("resnet18", {3, 16, 16});
}

TEST(Reference, SlowLargeVariantsHaveRightGradients) {
  check_direction("resnet50", {3, 72, 72});
  check_direction("inception_v1", {3, 72, 72});
  check_direction("vgg16", {3, 32, 32});
}

}  // namespace
}  // namespace convoy
