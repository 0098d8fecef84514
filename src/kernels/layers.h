// The vocabulary of layers: plain descriptions, shared by networks (which connect them) and by
// families of kernels (which carry them out). `relu` on a layer means that a ReLU which followed it
// has been folded into it.
#pragma once

#include <string_view>
#include <variant>

namespace convoy {

struct Input {};

struct Convolution {
  int channels = 0;  // of the output
  int kernel = 1;    // square
  int stride = 1;
  int padding = 0;
  int groups = 1;
  bool bias = true;
  bool relu = false;
};

struct BatchNorm {
  float epsilon = 1e-5f;
  float momentum = 0.1f;  // running = (1 - momentum) * running + momentum * batch
  bool relu = false;
};

struct Relu {};

struct MaxPool {
  int kernel = 2;
  int stride = 2;
  int padding = 0;
  bool ceil_mode = false;
  bool relu = false;
};

struct AveragePool {
  int kernel = 2;
  int stride = 2;
  int padding = 0;
  bool ceil_mode = false;
  bool count_padding = true;  // padded positions count in the divisor
};

struct AdaptiveAveragePool {  // 1x1: global average pooling
  int height = 1;
  int width = 1;
};

// Takes any shape, flattened in CHW order.
struct Dense {
  int features = 0;
  bool bias = true;
  bool relu = false;
};

struct Dropout {
  float rate = 0.5f;
};

struct Concat {};  // along channels

struct Add {  // of two inputs of one shape
  bool relu = false;
};

// y = x / (k + alpha / size * sum of squares over `size` neighbouring channels) ^ beta
struct LocalResponseNorm {
  int size = 5;
  float alpha = 1e-4f;
  float beta = 0.75f;
  float k = 1.0f;
};

using Layer = std::variant<Input, Convolution, BatchNorm, Relu, MaxPool, AveragePool,
                           AdaptiveAveragePool, Dense, Dropout, Concat, Add, LocalResponseNorm>;

std::string_view layer_kind(const Layer& layer);  // "convolution", "batch norm", ...

}  // namespace convoy
