// AlexNet as torchvision has it (Krizhevsky 2014, "one weird trick": one tower, no local response
// norm). Small images get a 5x5 stem of stride 1 and a head that reads 3x3 instead of 6x6
// positions.
#include <fmt/format.h>

#include "nn/zoo_networks.h"

namespace convoy {
namespace {

void add_convolution(Network& net, int number, const Convolution& layer) {
  net.then(fmt::format("features.{}", number), layer);
  net.then(fmt::format("features.{}", number + 1), Relu{});
}

}  // namespace

Network make_alexnet(const std::string& name, Shape input, int classes) {
  const bool small = is_small_image(input);
  const MaxPool pool{.kernel = 3, .stride = 2};
  Network net(name, input);
  if (small)
    add_convolution(net, 0, {.channels = 64, .kernel = 5, .stride = 1, .padding = 2});
  else
    add_convolution(net, 0, {.channels = 64, .kernel = 11, .stride = 4, .padding = 2});
  net.then("features.2", pool);
  add_convolution(net, 3, {.channels = 192, .kernel = 5, .padding = 2});
  net.then("features.5", pool);
  add_convolution(net, 6, {.channels = 384, .kernel = 3, .padding = 1});
  add_convolution(net, 8, {.channels = 256, .kernel = 3, .padding = 1});
  add_convolution(net, 10, {.channels = 256, .kernel = 3, .padding = 1});
  net.then("features.12", pool);
  const int head = small ? 3 : 6;
  const Shape map = net.output().shape;
  if (map.height != head || map.width != head) net.then("avgpool", AdaptiveAveragePool{head, head});
  net.then("classifier.0", Dropout{.rate = 0.5f});
  net.then("classifier.1", Dense{.features = 4096});
  net.then("classifier.2", Relu{});
  net.then("classifier.3", Dropout{.rate = 0.5f});
  net.then("classifier.4", Dense{.features = 4096});
  net.then("classifier.5", Relu{});
  net.then("classifier.6", Dense{.features = classes});
  return net;
}

}  // namespace convoy
