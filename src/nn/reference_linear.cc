// Convolution and dense: what a position reads is gathered into a patch, then it is products of
// rows.
#include <algorithm>

#include "nn/reference_layers.h"

namespace convoy::reference {
namespace {

// Eight partial sums, so that the compiler may use vector registers without reordering our
// arithmetic.
double dot(const double* a, const double* b, std::size_t count) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int j = 0; j < 8; ++j) sums[j] += a[i + j] * b[i + j];
  double total = 0;
  for (const double sum : sums) total += sum;
  for (; i < count; ++i) total += a[i] * b[i];
  return total;
}

void add_scaled(double* into, double factor, const double* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] += factor * from[i];
}

// Calls visit(index in the patch, index in the sample) for each tap of output position (row,
// column) that lies inside the input. A patch is [channels][kernel][kernel], so that a group of
// channels is a range of it.
template <typename Visit>
void for_each_tap(const Convolution& layer, const Shape& in, int row, int column, Visit&& visit) {
  const int top = row * layer.stride - layer.padding;
  const int left = column * layer.stride - layer.padding;
  std::size_t tap = 0;
  for (int c = 0; c < in.channels; ++c)
    for (int y = top; y < top + layer.kernel; ++y)
      for (int x = left; x < left + layer.kernel; ++x, ++tap)
        if (y >= 0 && y < in.height && x >= 0 && x < in.width)
          visit(tap, (std::size_t(c) * in.height + y) * in.width + x);
}

// The patches of all positions in a row of the output, so that weights, which may be larger than
// any cache, are read once for a row.
void gather(const Convolution& layer, const Tensor& x, int n, int row, int width,
            Numbers& patches) {
  std::fill(patches.begin(), patches.end(), 0.0);
  const double* sample = x.sample(n);
  double* patch = patches.data();
  for (int column = 0; column < width; ++column, patch += patches.size() / width)
    for_each_tap(layer, x.shape, row, column,
                 [&](std::size_t tap, std::size_t at) { patch[tap] = sample[at]; });
}

}  // namespace

void forward(const Convolution& layer, const Tensor& x, const Numbers& weight, const Numbers& bias,
             Tensor& y) {
  const std::size_t patch_size = std::size_t(x.shape.channels) * layer.kernel * layer.kernel;
  const std::size_t group_size = patch_size / layer.groups;
  const int group_channels = layer.channels / layer.groups;
  const int width = y.shape.width;
  Numbers patches(patch_size * width);
  for (int n = 0; n < y.batch; ++n)
    for (int row = 0; row < y.shape.height; ++row) {
      gather(layer, x, n, row, width, patches);
      for (int o = 0; o < layer.channels; ++o) {
        const double* from = patches.data() + o / group_channels * group_size;
        double* to = y.plane(n, o) + std::size_t(row) * width;
        for (int column = 0; column < width; ++column, from += patch_size)
          to[column] =
              dot(weight.data() + o * group_size, from, group_size) + (bias.empty() ? 0 : bias[o]);
      }
    }
}

void backward(const Convolution& layer, const Tensor& x, const Numbers& weight, const Tensor& gy,
              Tensor& gx, Numbers& weight_gradient, Numbers& bias_gradient) {
  const std::size_t patch_size = std::size_t(x.shape.channels) * layer.kernel * layer.kernel;
  const std::size_t group_size = patch_size / layer.groups;
  const int group_channels = layer.channels / layer.groups;
  const int width = gy.shape.width;
  Numbers patches(patch_size * width), patch_gradients(patch_size * width);
  for (int n = 0; n < gy.batch; ++n)
    for (int row = 0; row < gy.shape.height; ++row) {
      gather(layer, x, n, row, width, patches);
      std::fill(patch_gradients.begin(), patch_gradients.end(), 0.0);
      for (int o = 0; o < layer.channels; ++o) {
        const double* from = gy.plane(n, o) + std::size_t(row) * width;
        std::size_t at = o / group_channels * group_size;
        for (int column = 0; column < width; ++column, at += patch_size) {
          const double g = from[column];
          if (g == 0) continue;
          add_scaled(weight_gradient.data() + o * group_size, g, patches.data() + at, group_size);
          add_scaled(patch_gradients.data() + at, g, weight.data() + o * group_size, group_size);
          if (!bias_gradient.empty()) bias_gradient[o] += g;
        }
      }
      double* sample = gx.sample(n);
      const double* patch = patch_gradients.data();
      for (int column = 0; column < width; ++column, patch += patch_size)
        for_each_tap(layer, x.shape, row, column,
                     [&](std::size_t tap, std::size_t at) { sample[at] += patch[tap]; });
    }
}

void forward(const Dense& layer, const Tensor& x, const Numbers& weight, const Numbers& bias,
             Tensor& y) {
  const std::size_t inputs = x.shape.count();
  for (int n = 0; n < y.batch; ++n)
    for (int o = 0; o < layer.features; ++o)
      y.sample(n)[o] =
          dot(weight.data() + o * inputs, x.sample(n), inputs) + (bias.empty() ? 0 : bias[o]);
}

void backward(const Dense& layer, const Tensor& x, const Numbers& weight, const Tensor& gy,
              Tensor& gx, Numbers& weight_gradient, Numbers& bias_gradient) {
  const std::size_t inputs = x.shape.count();
  for (int n = 0; n < gy.batch; ++n)
    for (int o = 0; o < layer.features; ++o) {
      const double g = gy.sample(n)[o];
      add_scaled(weight_gradient.data() + o * inputs, g, x.sample(n), inputs);
      add_scaled(gx.sample(n), g, weight.data() + o * inputs, inputs);
      if (!bias_gradient.empty()) bias_gradient[o] += g;
    }
}

}  // namespace convoy::reference
