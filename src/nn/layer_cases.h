// Small networks that between them have every layer in every form: what any family of kernels must
// be able to do.
#pragma once

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <vector>

#include "nn/network.h"

namespace convoy::testing {

// A network around one layer: something trained before it and after it, so that gradients pass
// through it both ways.
inline Network around(Shape input, int channels, const std::vector<Layer>& layers) {
  Network network("around", input);
  network.then("before", Convolution{.channels = channels, .kernel = 3, .padding = 1});
  for (std::size_t i = 0; i < layers.size(); ++i)
    network.then(fmt::format("layer{}", i), layers[i]);
  network.then("head", Dense{.features = 5});
  return network;
}

struct Case {
  std::string name;
  Network network;
};

inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

inline std::vector<Case> layer_cases() {
  const Shape image{3, 11, 9};
  Network residual("residual", image);
  residual.then("stem", Convolution{.channels = 32, .kernel = 3, .padding = 1, .bias = false});
  const NodeId start = residual.then("stem.relu", Relu{});
  residual.then("conv1", Convolution{.channels = 32, .kernel = 3, .padding = 1, .bias = false});
  residual.then("bn1", BatchNorm{});
  residual.then("relu1", Relu{});
  residual.then("conv2", Convolution{.channels = 32, .kernel = 3, .padding = 1, .bias = false});
  const NodeId end = residual.then("bn2", BatchNorm{});
  residual.add("add", Add{}, {end, start});
  const NodeId middle = residual.then("relu2", Relu{});
  const NodeId once = residual.add("side", Convolution{.channels = 32, .kernel = 1}, {middle});
  residual.add("add2", Add{}, {middle, once});
  residual.add("twice", Add{},
               {NodeId(residual.nodes().size()) - 1, NodeId(residual.nodes().size()) - 1});
  residual.then("pool", AdaptiveAveragePool{});
  residual.then("fc", Dense{.features = 4});

  // The gradient that the norm passes on is where the convolution adds its own.
  Network short_residual("short_residual", image);
  short_residual.then("stem", Convolution{.channels = 40, .kernel = 3, .padding = 1});
  const NodeId before = short_residual.then("stem.relu", Relu{});
  short_residual.then("conv",
                      Convolution{.channels = 40, .kernel = 3, .padding = 1, .bias = false});
  const NodeId norm = short_residual.then("bn", BatchNorm{});
  short_residual.add("add", Add{}, {norm, before});
  short_residual.then("relu", Relu{});
  short_residual.then("last",
                      Convolution{.channels = 32, .kernel = 3, .padding = 1, .bias = false});
  short_residual.then("last.bn", BatchNorm{});
  short_residual.then("last.relu", Relu{});
  short_residual.then("pool", AdaptiveAveragePool{});
  short_residual.then("fc", Dense{.features = 4});

  const auto branches = [&](int a, int b) {
    Network network("branches", image);
    const NodeId stem = network.then("stem", Convolution{.channels = 24, .kernel = 3});
    const NodeId left = network.add("left", Convolution{.channels = a, .kernel = 1}, {stem});
    network.add("right", MaxPool{.kernel = 3, .stride = 1, .padding = 1}, {stem});
    const NodeId right =
        network.then("right.conv", Convolution{.channels = b, .kernel = 3, .padding = 1});
    network.add("concat", Concat{}, {left, right, stem});
    network.then("fc", Dense{.features = 6});
    return network;
  };
  return {
      {"convolution",
       around(image, 32, {Convolution{.channels = 48, .kernel = 3, .padding = 1}, Relu{}})},
      {"convolution_odd_channels",
       around(image, 20, {Convolution{.channels = 50, .kernel = 5}, Relu{}})},
      {"convolution_stride",
       around(image, 16, {Convolution{.channels = 32, .kernel = 3, .stride = 2, .padding = 1}})},
      {"convolution_1x1_stride",
       around(image, 16, {Convolution{.channels = 32, .kernel = 1, .stride = 2, .bias = false}})},
      {"convolution_groups",
       around(image, 32, {Convolution{.channels = 64, .kernel = 3, .padding = 1, .groups = 2}})},
      // Large enough for Winograd's algorithm, in maps that its tiles do not fit.
      {"winograd", around(image, 64,
                          {Convolution{.channels = 72, .kernel = 3, .padding = 1}, Relu{},
                           Convolution{.channels = 64, .kernel = 3, .bias = false}})},
      {"convolution_depthwise",
       around(image, 32, {Convolution{.channels = 32, .kernel = 3, .groups = 32, .bias = false}})},
      {"convolution_to_one_pixel",
       around({3, 5, 5}, 8, {Convolution{.channels = 12, .kernel = 5}, Relu{}})},
      {"batch_norm", around(image, 20, {BatchNorm{}})},
      {"batch_norm_relu", around(image, 32, {BatchNorm{.epsilon = 1e-3f}, Relu{}})},
      {"relu_alone", around(image, 16, {AveragePool{}, Relu{}})},
      {"max_pool", around(image, 16, {Relu{}, MaxPool{}})},
      {"max_pool_overlapping",
       around(image, 24, {MaxPool{.kernel = 3, .stride = 2, .padding = 1}})},
      {"max_pool_ceil", around(image, 16, {MaxPool{.kernel = 3, .stride = 2, .ceil_mode = true}})},
      {"max_pool_vector", around({3, 4, 4}, 20, {MaxPool{.kernel = 4, .stride = 4}})},
      {"average_pool", around(image, 16, {AveragePool{.kernel = 3, .stride = 2, .padding = 1}})},
      {"average_pool_ceil_uncounted", around(image, 16,
                                             {AveragePool{.kernel = 3,
                                                          .stride = 2,
                                                          .padding = 1,
                                                          .ceil_mode = true,
                                                          .count_padding = false}})},
      {"adaptive_uneven", around(image, 16, {AdaptiveAveragePool{.height = 4, .width = 5}})},
      {"global_odd_channels", around(image, 20, {AdaptiveAveragePool{}})},
      {"dense_relu",
       around(image, 16,
              {Dense{.features = 37}, Relu{}, Dense{.features = 20, .bias = false}, Relu{}})},
      {"local_response_norm", around(image, 32, {LocalResponseNorm{.alpha = 0.1f}})},
      {"local_response_norm_odd",
       around(image, 20, {LocalResponseNorm{.size = 3, .alpha = 0.1f, .k = 2}})},
      {"residual", residual},
      {"residual_of_one_convolution", short_residual},
      {"concat_blocks", branches(16, 32)},
      {"concat_lanes", branches(20, 7)},
      {"unread_rows",
       around({1, 28, 28}, 32,
              {Relu{}, MaxPool{}, Convolution{.channels = 32, .kernel = 3}, Relu{}, MaxPool{},
               Convolution{.channels = 16, .kernel = 3}, Relu{}, MaxPool{}})},
      {"unread_rows_with_padding",
       around({3, 33, 33}, 32,
              {Convolution{.channels = 32, .kernel = 3, .padding = 1}, Relu{}, MaxPool{}})},
      {"dense_first",
       [] {
         Network network("dense_first", {2, 3, 5});
         network.then("fc1", Dense{.features = 9});
         network.then("relu", Relu{});
         network.then("fc2", Dense{.features = 3});
         return network;
       }()},
  };
}

}  // namespace convoy::testing
