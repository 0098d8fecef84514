// ResNets (He et al. 2015) as torchvision has them; from resnet50 on its "v1.5": the 3x3
// convolution of a block has the stride. Small images get a 3x3 stem of stride 1 and no max pool.
#include <fmt/format.h>

#include <array>

#include "base/check.h"
#include "nn/zoo_networks.h"

namespace convoy {
namespace {

struct Plan {
  const char* name;
  bool bottleneck;  // blocks of 1x1, 3x3, 1x1 with four times the channels, instead of 3x3, 3x3
  std::array<int, 4> blocks;  // of each stage
};

constexpr Plan kPlans[] = {
    {"resnet18", false, {2, 2, 2, 2}},  {"resnet34", false, {3, 4, 6, 3}},
    {"resnet50", true, {3, 4, 6, 3}},   {"resnet101", true, {3, 4, 23, 3}},
    {"resnet152", true, {3, 8, 36, 3}},
};

const Plan& plan_of(const std::string& name) {
  for (const Plan& plan : kPlans)
    if (name == plan.name) return plan;
  CHECK(false, "no plan for {}", name);
}

// A convolution without bias, named PREFIX + conv, and its batch norm, named PREFIX + norm.
NodeId convolve(Network& net, const std::string& prefix, const char* conv, const char* norm,
                NodeId from, Convolution layer) {
  layer.bias = false;
  layer.padding = layer.kernel / 2;
  const NodeId convolved = net.add(prefix + conv, layer, {from});
  return net.add(prefix + norm, BatchNorm{}, {convolved});
}

NodeId add_block(Network& net, const std::string& prefix, bool bottleneck, int channels, int stride,
                 NodeId from) {
  const int out = bottleneck ? 4 * channels : channels;
  NodeId at = from;
  if (bottleneck) {
    at = convolve(net, prefix, "conv1", "bn1", at, {.channels = channels, .kernel = 1});
    at = net.then(prefix + "relu1", Relu{});
    at = convolve(net, prefix, "conv2", "bn2", at,
                  {.channels = channels, .kernel = 3, .stride = stride});
    at = net.then(prefix + "relu2", Relu{});
    at = convolve(net, prefix, "conv3", "bn3", at, {.channels = out, .kernel = 1});
  } else {
    at = convolve(net, prefix, "conv1", "bn1", at,
                  {.channels = channels, .kernel = 3, .stride = stride});
    at = net.then(prefix + "relu1", Relu{});
    at = convolve(net, prefix, "conv2", "bn2", at, {.channels = channels, .kernel = 3});
  }
  NodeId shortcut = from;
  if (stride != 1 || net.node(from).shape.channels != out)
    shortcut = convolve(net, prefix, "downsample.0", "downsample.1", from,
                        {.channels = out, .kernel = 1, .stride = stride});
  net.add(prefix + "add", Add{}, {at, shortcut});
  return net.then(prefix + "relu", Relu{});
}

}  // namespace

Network make_resnet(const std::string& name, Shape input, int classes) {
  const Plan& plan = plan_of(name);
  const bool small = is_small_image(input);
  Network net(name, input);
  convolve(net, "", "conv1", "bn1", 0,
           {.channels = 64, .kernel = small ? 3 : 7, .stride = small ? 1 : 2});
  NodeId at = net.then("relu", Relu{});
  if (!small) at = net.then("maxpool", MaxPool{.kernel = 3, .stride = 2, .padding = 1});
  for (int stage = 0; stage < 4; ++stage)
    for (int block = 0; block < plan.blocks[stage]; ++block)
      at = add_block(net, fmt::format("layer{}.{}.", stage + 1, block), plan.bottleneck,
                     64 << stage, stage > 0 && block == 0 ? 2 : 1, at);
  net.then("avgpool", AdaptiveAveragePool{});
  net.then("fc", Dense{.features = classes});
  return net;
}

}  // namespace convoy
