// VGG (Simonyan and Zisserman 2014), configurations D (vgg16) and E (vgg19) without batch norm, as
// torchvision has them. Small images get one dense layer after the last pool.
#include <fmt/format.h>

#include <algorithm>

#include "nn/zoo_networks.h"

namespace convoy {
namespace {

constexpr int kStageChannels[] = {64, 128, 256, 512, 512};

// Five stages of 3x3 convolutions, each ended by a pool. torchvision numbers the layers of
// `features` in one row. In the small variant pools round up, and one that finds a map less than 2
// pixels wide or high is left out (its number too is skipped), so that any input down to 1x1
// passes.
void add_features(Network& net, bool deep, bool small) {
  int number = 0;
  const auto next_name = [&number] { return fmt::format("features.{}", number++); };
  for (int stage = 0; stage < 5; ++stage) {
    const int convolutions = stage < 2 ? 2 : deep ? 4 : 3;
    for (int i = 0; i < convolutions; ++i) {
      net.then(next_name(),
               Convolution{.channels = kStageChannels[stage], .kernel = 3, .padding = 1});
      net.then(next_name(), Relu{});
    }
    const Shape map = net.output().shape;
    const std::string pool = next_name();
    if (!small || std::min(map.height, map.width) >= 2) net.then(pool, MaxPool{.ceil_mode = small});
  }
}

void add_average_pool(Network& net, int size) {
  const Shape map = net.output().shape;
  if (map.height != size || map.width != size) net.then("avgpool", AdaptiveAveragePool{size, size});
}

}  // namespace

Network make_vgg(const std::string& name, Shape input, int classes) {
  const bool small = is_small_image(input);
  Network net(name, input);
  add_features(net, name == "vgg19", small);
  if (small) {
    add_average_pool(net, 1);
    net.then("classifier", Dense{.features = classes});
    return net;
  }
  add_average_pool(net, 7);
  for (const int number : {0, 3}) {
    net.then(fmt::format("classifier.{}", number), Dense{.features = 4096});
    net.then(fmt::format("classifier.{}", number + 1), Relu{});
    net.then(fmt::format("classifier.{}", number + 2), Dropout{.rate = 0.5f});
  }
  net.then("classifier.6", Dense{.features = classes});
  return net;
}

}  // namespace convoy
