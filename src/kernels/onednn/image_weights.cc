#include "kernels/onednn/image_weights.h"

#include <immintrin.h>

#include <algorithm>

#include "base/check.h"
#include "kernels/parallel.h"

namespace convoy::onednn {
namespace {

constexpr int kLanes = 8;

// One row of the kernel for one channel of the image and 8 of the target.
struct Item {
  int block, channel, row;
};

Item item_at(const ImageConvolution& c, std::size_t index) {
  const int rows = c.source.channels * c.kernel;
  return {int(index) / rows, int(index) % rows / c.kernel, int(index) % c.kernel};
}

// sums[tap] += gradient * image for one row of outputs. kPhases outputs at a time have sums of
// their own, lest each addition wait for the one before.
template <int kKernel, int kPhases>
void add_row(const ImageConvolution& c, const float* image_row, const float* gradient_row,
             __m256 (&sums)[kPhases][kKernel]) {
  const auto add = [&](int x, __m256(&to)[kKernel]) __attribute__((always_inline)) {
    const __m256 gradient = _mm256_loadu_ps(gradient_row + x * kLanes);
    const float* first = image_row + x * c.stride - c.padding;
#pragma GCC unroll 16
    for (int tap = 0; tap < kKernel; ++tap)
      to[tap] = _mm256_fmadd_ps(_mm256_broadcast_ss(first + tap), gradient, to[tap]);
  };
  const auto add_edge = [&](int x) {
    const __m256 gradient = _mm256_loadu_ps(gradient_row + x * kLanes);
    for (int tap = 0; tap < kKernel; ++tap) {
      const int at = x * c.stride - c.padding + tap;
      if (at >= 0 && at < c.source.width)
        sums[0][tap] = _mm256_fmadd_ps(_mm256_set1_ps(image_row[at]), gradient, sums[0][tap]);
    }
  };
  const int inner = std::min((c.padding + c.stride - 1) / c.stride, c.target.width);
  const int last = c.source.width - kKernel + c.padding;  // of the image, where a window may begin
  const int outer = std::clamp(last < 0 ? 0 : last / c.stride + 1, inner, c.target.width);
  int x = 0;
  for (; x < inner; ++x) add_edge(x);
  for (; x + kPhases <= outer; x += kPhases)
#pragma GCC unroll 4
    for (int phase = 0; phase < kPhases; ++phase) add(x + phase, sums[phase]);
  for (; x < outer; ++x) add(x, sums[0]);
  for (; x < c.target.width; ++x) add_edge(x);
}

template <int kKernel>
void add_sample(const ImageConvolution& c, const Item& item, const float* image,
                const float* gradients, float* totals) {
  constexpr int kPhases = kKernel <= 3 ? 4 : kKernel <= 6 ? 2 : 1;  // at most 12 sums
  __m256 sums[kPhases][kKernel];
  for (auto& phase : sums)
    for (__m256& sum : phase) sum = _mm256_setzero_ps();
  for (int y = 0; y < c.target.height; ++y) {
    const int from = y * c.stride - c.padding + item.row;
    if (from < 0 || from >= c.source.height) continue;
    add_row<kKernel, kPhases>(c, image + std::ptrdiff_t(from) * c.source.width,
                              gradients + std::ptrdiff_t(y) * c.target.width * kLanes, sums);
  }
  for (int tap = 0; tap < kKernel; ++tap, totals += kLanes) {
    __m256 total = _mm256_loadu_ps(totals);
    for (int phase = 0; phase < kPhases; ++phase) total = _mm256_add_ps(total, sums[phase][tap]);
    _mm256_storeu_ps(totals, total);
  }
}

void add_biases(const ImageConvolution& c, const float* gradients, double* totals) {
  __m256 sum = _mm256_setzero_ps();
  for (std::size_t i = 0; i < c.target.area(); ++i)
    sum = _mm256_add_ps(sum, _mm256_loadu_ps(gradients + i * kLanes));
  alignas(32) float lanes[kLanes];
  _mm256_store_ps(lanes, sum);
  for (int lane = 0; lane < kLanes; ++lane) totals[lane] += lanes[lane];
}

int blocks_of(const ImageConvolution& c) { return (c.target.channels + kLanes - 1) / kLanes; }

std::size_t items_of(const ImageConvolution& c) {
  return std::size_t(blocks_of(c)) * c.source.channels * c.kernel;
}

using AddSample = void (*)(const ImageConvolution&, const Item&, const float*, const float*,
                           float*);
AddSample kernel_for(int kernel) {
  switch (kernel) {
    case 3:
      return add_sample<3>;
    case 5:
      return add_sample<5>;
    case 7:
      return add_sample<7>;
    case 11:
      return add_sample<11>;
    default:
      return nullptr;
  }
}

}  // namespace

bool has_image_weights(int kernel) { return kernel_for(kernel) != nullptr; }

std::size_t image_weights_bytes(const ImageConvolution& c) {
  return blocks_of(c) * kLanes * sizeof(double) + items_of(c) * c.kernel * kLanes * sizeof(float);
}

void image_weights(const ImageConvolution& c, const float* source, const float* target_gradient,
                   float* weight_gradient, std::span<float> bias_gradient, std::byte* scratch) {
  const AddSample add = kernel_for(c.kernel);
  CHECK(add, "no kernel of {} for images", c.kernel);
  const int blocks = blocks_of(c);
  auto* bias_totals = reinterpret_cast<double*>(scratch);
  auto* totals = reinterpret_cast<float*>(bias_totals + blocks * kLanes);
  std::fill_n(bias_totals, blocks * kLanes, 0.0);
  // Each thread takes all samples for its items: sums are made in the same order by any number.
  parallel_for(items_of(c), 1, [&](std::size_t begin, std::size_t end) {
    const std::size_t item_floats = std::size_t(c.kernel) * kLanes;
    std::fill(totals + begin * item_floats, totals + end * item_floats, 0.0f);
    for (int n = 0; n < c.batch; ++n)
      for (std::size_t index = begin; index < end; ++index) {
        const Item item = item_at(c, index);
        const float* image =
            source + (std::size_t(n) * c.source.channels + item.channel) * c.source.area();
        const float* gradients =
            target_gradient + (std::size_t(n) * blocks + item.block) * c.target.area() * kLanes;
        add(c, item, image, gradients, totals + index * item_floats);
        if (item.channel == 0 && item.row == 0)
          add_biases(c, gradients, bias_totals + item.block * kLanes);
      }
    for (std::size_t index = begin; index < end; ++index) {
      const Item item = item_at(c, index);
      const int lanes = std::min(kLanes, c.target.channels - item.block * kLanes);
      for (int lane = 0; lane < lanes; ++lane)
        for (int tap = 0; tap < c.kernel; ++tap) {
          const int out = item.block * kLanes + lane;
          const std::size_t row =
              (std::size_t(out) * c.source.channels + item.channel) * c.kernel + item.row;
          weight_gradient[row * c.kernel + tap] = totals[index * item_floats + tap * kLanes + lane];
        }
    }
  });
  for (std::size_t i = 0; i < bias_gradient.size(); ++i) bias_gradient[i] = float(bias_totals[i]);
}

}  // namespace convoy::onednn
