#include "kernels/onednn/norm_planes.h"

#include "kernels/onednn/engine.h"
#include "kernels/parallel.h"

namespace convoy::onednn {
namespace {

constexpr std::size_t kGrain = 16384;  // floats worth waking a thread for

// A value is [planes][positions][lanes]: `blocks` planes per sample.
struct Planes {
  std::size_t blocks, positions;
  int lanes;

  Planes(const Shape& shape)
      : blocks(1), positions(shape.area()), lanes(is_blocked(shape) ? block() : shape.channels) {
    if (is_blocked(shape)) blocks = std::size_t(shape.channels + lanes - 1) / lanes;
  }
  std::size_t size() const { return positions * lanes; }
  std::size_t channels() const { return blocks * lanes; }               // with those that pad
  std::size_t grain() const { return (kGrain + size() - 1) / size(); }  // planes
};

// kLanes channels at all positions, `stride` floats apart.
template <int kLanes>
void sum_lanes(const float* x, std::size_t positions, int stride, double* sums, double* squares) {
  double sum[kLanes] = {}, square[kLanes] = {};
  for (std::size_t i = 0; i < positions; ++i, x += stride)
    for (int lane = 0; lane < kLanes; ++lane) {
      const double v = x[lane];
      sum[lane] += v;
      square[lane] += v * v;
    }
  for (int lane = 0; lane < kLanes; ++lane) {
    sums[lane] = sum[lane];
    squares[lane] = square[lane];
  }
}

void sum_plane(const Planes& p, const float* x, double* sums, double* squares) {
  int lane = 0;
  for (; lane + 8 <= p.lanes; lane += 8)
    sum_lanes<8>(x + lane, p.positions, p.lanes, sums + lane, squares + lane);
  for (; lane < p.lanes; ++lane)
    sum_lanes<1>(x + lane, p.positions, p.lanes, sums + lane, squares + lane);
}

}  // namespace

std::size_t channel_sums_bytes(const Shape& shape, int batch) {
  return Planes(shape).channels() * 2 * batch * sizeof(double);
}

void channel_sums(const Shape& shape, int batch, const float* x, double* partial,
                  NormStatistics& statistics) {
  const Planes p(shape);
  const std::size_t channels = p.channels();
  double* squares = partial + channels * batch;
  parallel_for(p.blocks * batch, p.grain(), [=](std::size_t begin, std::size_t end) {
    for (std::size_t plane = begin; plane < end; ++plane)
      sum_plane(p, x + plane * p.size(), partial + plane * p.lanes, squares + plane * p.lanes);
  });
  for (int n = 1; n < batch; ++n)
    for (std::size_t c = 0; c < channels; ++c) {
      partial[c] += partial[n * channels + c];
      squares[c] += squares[n * channels + c];
    }
  for (int c = 0; c < shape.channels; ++c) statistics.set(c, partial[c], squares[c]);
}

void add_linear(const Shape& shape, int batch, std::span<const float> slope,
                std::span<const float> offset, const float* x, float* gradient) {
  const Planes p(shape);
  parallel_for(p.blocks * batch, p.grain(), [=](std::size_t begin, std::size_t end) {
    for (std::size_t plane = begin; plane < end; ++plane) {
      const float* a = slope.data() + plane % p.blocks * p.lanes;
      const float* b = offset.data() + plane % p.blocks * p.lanes;
      const float* from = x + plane * p.size();
      float* to = gradient + plane * p.size();
      for (std::size_t i = 0; i < p.positions; ++i, from += p.lanes, to += p.lanes)
        for (int lane = 0; lane < p.lanes; ++lane) to[lane] += a[lane] * from[lane] + b[lane];
    }
  });
}

}  // namespace convoy::onednn
