// Batch norm and local response norm.
#include <algorithm>
#include <cmath>

#include "nn/reference_layers.h"

namespace convoy::reference {

Moments moments(const Tensor& x) {
  const int channels = x.shape.channels;
  const std::size_t area = x.shape.area();
  const double count = double(x.batch) * double(area);
  Moments result{Numbers(channels), Numbers(channels)};
  for (int c = 0; c < channels; ++c) {
    double sum = 0;
    for (int n = 0; n < x.batch; ++n)
      for (std::size_t i = 0; i < area; ++i) sum += x.plane(n, c)[i];
    const double mean = sum / count;
    double squares = 0;
    for (int n = 0; n < x.batch; ++n)
      for (std::size_t i = 0; i < area; ++i) squares += std::pow(x.plane(n, c)[i] - mean, 2);
    result.mean[c] = mean;
    result.variance[c] = squares / count;
  }
  return result;
}

void forward(const BatchNorm& layer, const Tensor& x, const Moments& by, const Numbers& weight,
             const Numbers& bias, Tensor& y) {
  for (int c = 0; c < x.shape.channels; ++c) {
    const double inverse = 1 / std::sqrt(by.variance[c] + double(layer.epsilon));
    for (int n = 0; n < x.batch; ++n)
      for (std::size_t i = 0; i < x.shape.area(); ++i)
        y.plane(n, c)[i] = (x.plane(n, c)[i] - by.mean[c]) * inverse * weight[c] + bias[c];
  }
}

// With h = (x - mean) / deviation: gx = weight / deviation * (gy - mean of gy - h * mean of (gy *
// h)), where the two means are the paths through the batch's mean and variance.
void backward(const BatchNorm& layer, const Tensor& x, const Moments& by, bool by_batch,
              const Numbers& weight, const Tensor& gy, Tensor& gx, Numbers& weight_gradient,
              Numbers& bias_gradient) {
  const std::size_t area = x.shape.area();
  const double count = double(x.batch) * double(area);
  for (int c = 0; c < x.shape.channels; ++c) {
    const double inverse = 1 / std::sqrt(by.variance[c] + double(layer.epsilon));
    const auto normal = [&](int n, std::size_t i) {
      return (x.plane(n, c)[i] - by.mean[c]) * inverse;
    };
    double sum = 0, sum_normal = 0;
    for (int n = 0; n < x.batch; ++n)
      for (std::size_t i = 0; i < area; ++i) {
        sum += gy.plane(n, c)[i];
        sum_normal += gy.plane(n, c)[i] * normal(n, i);
      }
    weight_gradient[c] += sum_normal;
    bias_gradient[c] += sum;
    const double mean = by_batch ? sum / count : 0;
    const double mean_normal = by_batch ? sum_normal / count : 0;
    for (int n = 0; n < x.batch; ++n)
      for (std::size_t i = 0; i < area; ++i)
        gx.plane(n, c)[i] +=
            weight[c] * inverse * (gy.plane(n, c)[i] - mean - normal(n, i) * mean_normal);
  }
}

namespace {

// k + alpha / size * sum of squares around channel c.
double scale_at(const LocalResponseNorm& layer, const Tensor& x, int n, int c, std::size_t i) {
  const int first = std::max(0, c - layer.size / 2);
  const int last = std::min(x.shape.channels - 1, c + (layer.size - 1) / 2);
  double squares = 0;
  for (int near = first; near <= last; ++near) squares += x.plane(n, near)[i] * x.plane(n, near)[i];
  return double(layer.k) + double(layer.alpha) / layer.size * squares;
}

}  // namespace

void forward(const LocalResponseNorm& layer, const Tensor& x, Tensor& y) {
  for (int n = 0; n < x.batch; ++n)
    for (int c = 0; c < x.shape.channels; ++c)
      for (std::size_t i = 0; i < x.shape.area(); ++i)
        y.plane(n, c)[i] =
            x.plane(n, c)[i] * std::pow(scale_at(layer, x, n, c, i), -double(layer.beta));
}

void backward(const LocalResponseNorm& layer, const Tensor& x, const Tensor& gy, Tensor& gx) {
  const double beta = layer.beta, rate = 2 * double(layer.alpha) / layer.size;
  for (int n = 0; n < x.batch; ++n)
    for (int c = 0; c < x.shape.channels; ++c)
      for (std::size_t i = 0; i < x.shape.area(); ++i) {
        const double scale = scale_at(layer, x, n, c, i);
        const double g = gy.plane(n, c)[i];
        gx.plane(n, c)[i] += g * std::pow(scale, -beta);
        const double through = -beta * g * x.plane(n, c)[i] * std::pow(scale, -beta - 1) * rate;
        const int first = std::max(0, c - layer.size / 2);
        const int last = std::min(x.shape.channels - 1, c + (layer.size - 1) / 2);
        for (int near = first; near <= last; ++near)
          gx.plane(n, near)[i] += through * x.plane(n, near)[i];
      }
}

}  // namespace convoy::reference
