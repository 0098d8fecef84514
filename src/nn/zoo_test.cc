#include "nn/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace convoy {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Case {
  const char* name;
  Shape input;
  int classes;
  std::size_t parameters;
};

TEST(Zoo, ParameterCountsAreExact) {
  const Shape image{3, 224, 224}, cifar{3, 32, 32}, mnist{1, 28, 28};
  const Case cases[] = {
      {"shallow", mnist, 10, 431080},        {"mnist_cnn", mnist, 10, 690590},
      {"resnet18", image, 1000, 11689512},   {"resnet34", image, 1000, 21797672},
      {"resnet50", image, 1000, 25557032},   {"resnet101", image, 1000, 44549160},
      {"resnet152", image, 1000, 60192808},  {"inception_v1", image, 1000, 6624904},
      {"alexnet", image, 1000, 61100840},    {"vgg16", image, 1000, 138357544},
      {"vgg19", image, 1000, 143667240},     {"resnet18", cifar, 10, 11173962},
      {"vgg16", cifar, 10, 14714688 + 5130}, {"vgg19", cifar, 10, 20024384 + 5130},
      {"resnet18", mnist, 10, 11172810},     {"airbench", cifar, 10, 1972768},
      {"airbench_wide", cifar, 10, 4424352},
  };
  for (const Case& c : cases)
    EXPECT_EQ(make_network(c.name, c.input, c.classes).parameter_count(), c.parameters)
        << c.name << " at " << c.input.to_string();
}

TEST(Zoo, OperationsAgreeWithPublishedFigures) {
  const auto gflop = [](const char* name) {
    return make_network(name, {3, 224, 224}, 1000).forward_flops() / 1e9;
  };
  EXPECT_NEAR(gflop("alexnet"), 0.71, 0.01);
  EXPECT_NEAR(gflop("resnet18"), 1.81, 0.01);
  EXPECT_NEAR(gflop("resnet50"), 4.09, 0.01);
  EXPECT_NEAR(gflop("resnet152"), 11.51, 0.02);
  EXPECT_NEAR(gflop("inception_v1"), 1.50, 0.01);
  EXPECT_NEAR(gflop("vgg16"), 15.47, 0.02);
  EXPECT_NEAR(gflop("vgg19"), 19.63, 0.02);
}

bool has_parameter(const Network& net, const std::string& name, std::vector<std::int64_t> dims) {
  const auto list = net.parameters();
  return std::any_of(list.begin(), list.end(), [&](const ParameterSpec& spec) {
    return spec.name == name && spec.dims == dims;
  });
}

TEST(Zoo, NamesAreTorchvisions) {
  const Shape image{3, 224, 224};
  const Network resnet = make_network("resnet50", image, 1000);
  EXPECT_TRUE(has_parameter(resnet, "conv1.weight", {64, 3, 7, 7}));
  EXPECT_TRUE(has_parameter(resnet, "bn1.bias", {64}));
  EXPECT_TRUE(has_parameter(resnet, "layer1.0.downsample.0.weight", {256, 64, 1, 1}));
  EXPECT_TRUE(has_parameter(resnet, "layer4.2.conv3.weight", {2048, 512, 1, 1}));
  EXPECT_TRUE(has_parameter(resnet, "fc.weight", {1000, 2048}));
  const Network inception = make_network("inception_v1", image, 1000);
  EXPECT_TRUE(has_parameter(inception, "conv1.conv.weight", {64, 3, 7, 7}));
  EXPECT_TRUE(has_parameter(inception, "inception3a.branch2.0.bn.weight", {96}));
  EXPECT_TRUE(has_parameter(inception, "inception5b.branch3.1.conv.weight", {128, 48, 3, 3}));
  EXPECT_TRUE(has_parameter(inception, "inception4e.branch4.1.conv.weight", {128, 528, 1, 1}));
  const Network alexnet = make_network("alexnet", image, 1000);
  EXPECT_TRUE(has_parameter(alexnet, "features.10.bias", {256}));
  EXPECT_TRUE(has_parameter(alexnet, "classifier.1.weight", {4096, 9216}));
  const Network vgg = make_network("vgg16", image, 1000);
  EXPECT_TRUE(has_parameter(vgg, "features.28.weight", {512, 512, 3, 3}));
  EXPECT_TRUE(has_parameter(vgg, "classifier.0.weight", {4096, 25088}));
  EXPECT_TRUE(
      has_parameter(make_network("vgg19", image, 1000), "features.34.weight", {512, 512, 3, 3}));
}

TEST(Zoo, StrideOfBottlenecksIsInTheThreeByThree) {
  const Network net = make_network("resnet50", {3, 224, 224}, 1000);
  for (const Node& node : net.nodes()) {
    if (node.name == "layer2.0.conv1") {
      EXPECT_EQ(std::get<Convolution>(node.layer).stride, 1);
    }
    if (node.name == "layer2.0.conv2") {
      EXPECT_EQ(std::get<Convolution>(node.layer).stride, 2);
    }
  }
}

// Every network at every size that data sets have; the last node is the logits.
TEST(Zoo, EveryNetworkTakesEveryUsualInput) {
  for (const std::string& name : zoo_names())
    for (const Shape input :
         {Shape{1, 28, 28}, Shape{3, 32, 32}, Shape{3, 64, 64}, Shape{3, 65, 65}, Shape{3, 72, 72},
          Shape{3, 224, 224}, Shape{3, 96, 160}}) {
      const Network net = make_network(name, input, 7);
      EXPECT_EQ(net.classes(), 7) << name << " at " << input.to_string();
      EXPECT_EQ(net.output().shape, (Shape{7, 1, 1}));
    }
}

TEST(Zoo, SmallVariantsKeepResolutionUntilTheLastStage) {
  for (const char* name : {"resnet18", "resnet152", "inception_v1"}) {
    const Network net = make_network(name, {3, 32, 32}, 10);
    const auto pool = std::find_if(net.nodes().begin(), net.nodes().end(),
                                   [](const Node& node) { return node.name == "avgpool"; });
    ASSERT_NE(pool, net.nodes().end());
    EXPECT_EQ(net.input_shape(*pool).height, 4) << name;
  }
}

TEST(Zoo, AirbenchWhitensPatchesAndScalesItsOutput) {
  const Network net = make_network("airbench", {3, 32, 32}, 10);
  EXPECT_TRUE(has_parameter(net, "whiten.weight", {24, 3, 2, 2}));
  EXPECT_TRUE(has_parameter(net, "layer2.conv1.weight", {256, 64, 3, 3}));
  EXPECT_TRUE(has_parameter(net, "fc.weight", {10, 256}));
  EXPECT_FLOAT_EQ(net.output_scale(), 1.0f / 9);
  EXPECT_NEAR(net.forward_flops() / 1e9, 0.118, 0.001);
}

TEST(Zoo, BadRequestsAreExplained) {
  EXPECT_THAT(
      [] {
        make_network("resnet81", {3, 32, 32}, 10);
      },
      ThrowsMessage<ConfigError>(
          AllOf(HasSubstr("unknown model 'resnet81'"), HasSubstr("resnet18"))));
  EXPECT_THROW(zoo_default_input("nothing"), ConfigError);
  EXPECT_THROW(make_network("resnet18", {3, 32, 32}, 0), ConfigError);
  EXPECT_THAT(
      [] {
        make_network("mnist_cnn", {1, 8, 8}, 10);
      },
      ThrowsMessage<ConfigError>(
          AllOf(HasSubstr("mnist_cnn with input 1x8x8"), HasSubstr("pool2"))));
  EXPECT_THROW(make_network("alexnet", {3, 14, 14}, 10), ConfigError);
  EXPECT_THROW(make_network("shallow", {3, 0, 14}, 10), ConfigError);
}

TEST(Zoo, DefaultsAreThoseOfTheStudies) {
  EXPECT_EQ(zoo_default_input("shallow"), (Shape{1, 28, 28}));
  EXPECT_EQ(zoo_default_classes("mnist_cnn"), 10);
  EXPECT_EQ(zoo_default_input("airbench"), (Shape{3, 32, 32}));
  EXPECT_EQ(zoo_default_input("vgg16"), (Shape{3, 224, 224}));
  EXPECT_EQ(zoo_default_classes("vgg16"), 1000);
  EXPECT_EQ(zoo_names().size(), 13u);
}

}  // namespace
}  // namespace convoy
