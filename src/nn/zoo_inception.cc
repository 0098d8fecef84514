// Inception v1 (GoogLeNet, Szegedy et al. 2014) as torchvision has it: batch norm after each
// convolution, 3x3 instead of 5x5 in the third branch, no auxiliary heads. Small images get a 3x3
// stem of stride 1 without the first max pool.
#include "nn/zoo_networks.h"

namespace convoy {
namespace {

// Channels of one Inception module: a branch of 1x1; 1x1 then 3x3; 1x1 then 3x3; pool then 1x1.
struct Module {
  const char* name;
  int branch1, reduce2, branch2, reduce3, branch3, branch4;
};

constexpr Module kStage3[] = {{"inception3a", 64, 96, 128, 16, 32, 32},
                              {"inception3b", 128, 128, 192, 32, 96, 64}};
constexpr Module kStage4[] = {{"inception4a", 192, 96, 208, 16, 48, 64},
                              {"inception4b", 160, 112, 224, 24, 64, 64},
                              {"inception4c", 128, 128, 256, 24, 64, 64},
                              {"inception4d", 112, 144, 288, 32, 64, 64},
                              {"inception4e", 256, 160, 320, 32, 128, 128}};
constexpr Module kStage5[] = {{"inception5a", 256, 160, 320, 32, 128, 128},
                              {"inception5b", 384, 192, 384, 48, 128, 128}};

// torchvision's BasicConv2d: convolution without bias, batch norm, ReLU.
NodeId convolve(Network& net, const std::string& name, NodeId from, Convolution layer) {
  layer.bias = false;
  layer.padding = layer.kernel / 2;
  net.add(name + ".conv", layer, {from});
  net.then(name + ".bn", BatchNorm{.epsilon = 0.001f});
  return net.then(name + ".relu", Relu{});
}

NodeId add_module(Network& net, const Module& m, NodeId from) {
  const std::string name = m.name;
  const NodeId first = convolve(net, name + ".branch1", from, {.channels = m.branch1, .kernel = 1});
  NodeId second = convolve(net, name + ".branch2.0", from, {.channels = m.reduce2, .kernel = 1});
  second = convolve(net, name + ".branch2.1", second, {.channels = m.branch2, .kernel = 3});
  NodeId third = convolve(net, name + ".branch3.0", from, {.channels = m.reduce3, .kernel = 1});
  third = convolve(net, name + ".branch3.1", third, {.channels = m.branch3, .kernel = 3});
  NodeId fourth =
      net.add(name + ".branch4.0",
              MaxPool{.kernel = 3, .stride = 1, .padding = 1, .ceil_mode = true}, {from});
  fourth = convolve(net, name + ".branch4.1", fourth, {.channels = m.branch4, .kernel = 1});
  return net.add(name, Concat{}, {first, second, third, fourth});
}

}  // namespace

Network make_inception_v1(const std::string& name, Shape input, int classes) {
  const bool small = is_small_image(input);
  const MaxPool halve{.kernel = 3, .stride = 2, .ceil_mode = true};
  Network net(name, input);
  NodeId at =
      convolve(net, "conv1", 0, {.channels = 64, .kernel = small ? 3 : 7, .stride = small ? 1 : 2});
  if (!small) at = net.then("maxpool1", halve);
  at = convolve(net, "conv2", at, {.channels = 64, .kernel = 1});
  convolve(net, "conv3", at, {.channels = 192, .kernel = 3});
  at = net.then("maxpool2", halve);
  for (const Module& module : kStage3) at = add_module(net, module, at);
  at = net.then("maxpool3", halve);
  for (const Module& module : kStage4) at = add_module(net, module, at);
  at = net.then("maxpool4", MaxPool{.kernel = 2, .stride = 2, .ceil_mode = true});
  for (const Module& module : kStage5) at = add_module(net, module, at);
  net.then("avgpool", AdaptiveAveragePool{});
  net.then("dropout", Dropout{.rate = 0.2f});
  net.then("fc", Dense{.features = classes});
  return net;
}

}  // namespace convoy
