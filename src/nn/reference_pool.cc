// Pools: each output position looks at one rectangle of its plane.
#include <algorithm>

#include "nn/reference_layers.h"

namespace convoy::reference {
namespace {

// Rows [top, bottom) and columns [left, right) inside the input, and the divisor of an average over
// them.
struct Window {
  int top, bottom, left, right;
  double divisor;
};

// `divisor` counts padded positions, but not those that ceil mode adds behind the padding.
template <typename Pool>
Window window_of(const Pool& pool, const Shape& in, int row, int column) {
  const int top = row * pool.stride - pool.padding;
  const int left = column * pool.stride - pool.padding;
  const int bottom = std::min(top + pool.kernel, in.height + pool.padding);
  const int right = std::min(left + pool.kernel, in.width + pool.padding);
  return {std::max(top, 0), std::min(bottom, in.height), std::max(left, 0),
          std::min(right, in.width), double(bottom - top) * (right - left)};
}

Window average_window(const AveragePool& pool, const Shape& in, const Shape&, int row, int column) {
  Window w = window_of(pool, in, row, column);
  if (!pool.count_padding) w.divisor = double(w.bottom - w.top) * (w.right - w.left);
  return w;
}

Window average_window(const AdaptiveAveragePool&, const Shape& in, const Shape& out, int row,
                      int column) {
  const auto begin = [](int i, int extent, int cells) { return i * extent / cells; };
  const auto end = [](int i, int extent, int cells) {
    return ((i + 1) * extent + cells - 1) / cells;
  };
  Window w{begin(row, in.height, out.height), end(row, in.height, out.height),
           begin(column, in.width, out.width), end(column, in.width, out.width), 0};
  w.divisor = double(w.bottom - w.top) * (w.right - w.left);
  return w;
}

// Calls visit(sample, channel, row, column, position in the plane) for each output value.
template <typename Visit>
void for_each_output(const Tensor& y, Visit&& visit) {
  for (int n = 0; n < y.batch; ++n)
    for (int c = 0; c < y.shape.channels; ++c)
      for (int row = 0; row < y.shape.height; ++row)
        for (int column = 0; column < y.shape.width; ++column)
          visit(n, c, row, column, std::size_t(row) * y.shape.width + column);
}

std::size_t place_of_maximum(const Window& w, int width, const double* plane) {
  std::size_t best = std::size_t(w.top) * width + w.left;
  for (int row = w.top; row < w.bottom; ++row)
    for (int column = w.left; column < w.right; ++column) {
      const std::size_t at = std::size_t(row) * width + column;
      if (plane[at] > plane[best]) best = at;
    }
  return best;
}

template <typename Pool>
void average_forward(const Pool& pool, const Tensor& x, Tensor& y) {
  for_each_output(y, [&](int n, int c, int row, int column, std::size_t position) {
    const Window w = average_window(pool, x.shape, y.shape, row, column);
    double sum = 0;
    for (int i = w.top; i < w.bottom; ++i)
      for (int j = w.left; j < w.right; ++j)
        sum += x.plane(n, c)[std::size_t(i) * x.shape.width + j];
    y.plane(n, c)[position] = sum / w.divisor;
  });
}

template <typename Pool>
void average_backward(const Pool& pool, const Tensor& x, const Tensor& gy, Tensor& gx) {
  for_each_output(gy, [&](int n, int c, int row, int column, std::size_t position) {
    const Window w = average_window(pool, x.shape, gy.shape, row, column);
    const double share = gy.plane(n, c)[position] / w.divisor;
    for (int i = w.top; i < w.bottom; ++i)
      for (int j = w.left; j < w.right; ++j)
        gx.plane(n, c)[std::size_t(i) * x.shape.width + j] += share;
  });
}

}  // namespace

void forward(const MaxPool& layer, const Tensor& x, Tensor& y) {
  for_each_output(y, [&](int n, int c, int row, int column, std::size_t position) {
    const Window w = window_of(layer, x.shape, row, column);
    const double* plane = x.plane(n, c);
    y.plane(n, c)[position] = plane[place_of_maximum(w, x.shape.width, plane)];
  });
}

void backward(const MaxPool& layer, const Tensor& x, const Tensor& gy, Tensor& gx) {
  for_each_output(gy, [&](int n, int c, int row, int column, std::size_t position) {
    const Window w = window_of(layer, x.shape, row, column);
    gx.plane(n, c)[place_of_maximum(w, x.shape.width, x.plane(n, c))] += gy.plane(n, c)[position];
  });
}

void forward(const AveragePool& layer, const Tensor& x, Tensor& y) { average_forward(layer, x, y); }
void backward(const AveragePool& layer, const Tensor& x, const Tensor& gy, Tensor& gx) {
  average_backward(layer, x, gy, gx);
}

void forward(const AdaptiveAveragePool& layer, const Tensor& x, Tensor& y) {
  average_forward(layer, x, y);
}
void backward(const AdaptiveAveragePool& layer, const Tensor& x, const Tensor& gy, Tensor& gx) {
  average_backward(layer, x, gy, gx);
}

}  // namespace convoy::reference
