// The network of airbench94 (Jordan 2024), made to learn CIFAR-10 in few operations: 0.11 GFLOP an
// image, a fifth of resnet18's. The first convolution is meant to start as a whitening of image
// patches and to stay so (`start = "whiten,identity"`, `freeze = "whiten"`). ReLU stands where the
// original has GELU, the whitening has no bias, and batch norms have weights. airbench_wide has
// half as many channels again, and more than twice the operations.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "nn/zoo_networks.h"

namespace convoy {
namespace {

constexpr int kPatch = 2;  // pixels each way that the whitening reads
constexpr int kLastPool = 3;

// Running statistics follow closely, because training is short.
constexpr BatchNorm kNorm{.momentum = 0.4f};

void add_block(Network& net, const std::string& prefix, int channels) {
  const Convolution conv{.channels = channels, .kernel = 3, .padding = 1, .bias = false};
  net.then(prefix + "conv1", conv);
  net.then(prefix + "pool", MaxPool{});
  net.then(prefix + "bn1", kNorm);
  net.then(prefix + "relu1", Relu{});
  net.then(prefix + "conv2", conv);
  net.then(prefix + "bn2", kNorm);
  net.then(prefix + "relu2", Relu{});
}

}  // namespace

Network make_airbench(const std::string& name, Shape input, int classes) {
  Network net(name, input);
  // Each principal component of a patch with both signs, so that ReLU loses nothing.
  net.then("whiten",
           Convolution{
               .channels = 2 * kPatch * kPatch * input.channels, .kernel = kPatch, .bias = false});
  net.then("relu", Relu{});
  int block = 0;
  const std::array<int, 3> widths =
      name == "airbench_wide" ? std::array{96, 384, 384} : std::array{64, 256, 256};
  for (const int channels : widths) add_block(net, fmt::format("layer{}.", ++block), channels);
  const Shape map = net.output().shape;
  if (std::min(map.height, map.width) >= kLastPool)
    net.then("maxpool", MaxPool{.kernel = kLastPool, .stride = kLastPool});
  const Shape left = net.output().shape;
  if (left.area() > 1) net.then("avgpool", AdaptiveAveragePool{});
  net.then("fc", Dense{.features = classes, .bias = false});
  net.scale_output(1.0f / 9);
  return net;
}

}  // namespace convoy
