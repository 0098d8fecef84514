// Layers in double precision by plain loops, for tests: the yardstick that the engine is compared
// with. Nothing here is shared with the engine, on purpose.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/shape.h"
#include "kernels/layers.h"

namespace convoy::reference {

using Numbers = std::vector<double>;

// The values (or gradients) of one node for a whole batch: [batch][channels][height][width].
struct Tensor {
  Shape shape;
  int batch = 0;
  Numbers data;

  Tensor() = default;
  Tensor(Shape s, int n) : shape(s), batch(n), data(s.count() * std::size_t(n)) {}
  double* sample(int n) { return data.data() + n * shape.count(); }
  const double* sample(int n) const { return data.data() + n * shape.count(); }
  double* plane(int n, int c) { return sample(n) + c * shape.area(); }
  const double* plane(int n, int c) const { return sample(n) + c * shape.area(); }
};

// forward overwrites y. backward adds to gx and to the gradients of parameters; gy is the gradient
// of y. An empty bias means that the layer has none.
void forward(const Convolution& layer, const Tensor& x, const Numbers& weight, const Numbers& bias,
             Tensor& y);
void backward(const Convolution& layer, const Tensor& x, const Numbers& weight, const Tensor& gy,
              Tensor& gx, Numbers& weight_gradient, Numbers& bias_gradient);

void forward(const Dense& layer, const Tensor& x, const Numbers& weight, const Numbers& bias,
             Tensor& y);
void backward(const Dense& layer, const Tensor& x, const Numbers& weight, const Tensor& gy,
              Tensor& gx, Numbers& weight_gradient, Numbers& bias_gradient);

// Mean and biased variance of each channel over batch and positions.
struct Moments {
  Numbers mean;
  Numbers variance;
};
Moments moments(const Tensor& x);
void forward(const BatchNorm& layer, const Tensor& x, const Moments& by, const Numbers& weight,
             const Numbers& bias, Tensor& y);
// `by_batch`: the moments are those of x and move with it; otherwise they are constants (running
// statistics).
void backward(const BatchNorm& layer, const Tensor& x, const Moments& by, bool by_batch,
              const Numbers& weight, const Tensor& gy, Tensor& gx, Numbers& weight_gradient,
              Numbers& bias_gradient);

// Of several equal maxima of a window the first, in row order, gets the gradient.
void forward(const MaxPool& layer, const Tensor& x, Tensor& y);
void backward(const MaxPool& layer, const Tensor& x, const Tensor& gy, Tensor& gx);

void forward(const AveragePool& layer, const Tensor& x, Tensor& y);
void backward(const AveragePool& layer, const Tensor& x, const Tensor& gy, Tensor& gx);

// Cell i of n averages positions floor(i * extent / n) up to, not including, ceil((i + 1) * extent
// / n).
void forward(const AdaptiveAveragePool& layer, const Tensor& x, Tensor& y);
void backward(const AdaptiveAveragePool& layer, const Tensor& x, const Tensor& gy, Tensor& gx);

// Channel c looks at channels c - size / 2 up to and including c + (size - 1) / 2, where they
// exist.
void forward(const LocalResponseNorm& layer, const Tensor& x, Tensor& y);
void backward(const LocalResponseNorm& layer, const Tensor& x, const Tensor& gy, Tensor& gx);

}  // namespace convoy::reference
