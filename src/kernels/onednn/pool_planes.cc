// B = 8, for any CPU with AVX2.
#include "kernels/onednn/pool_planes.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace convoy::onednn {

template <>
void max_pool_forward<8>(const PoolPlane& p, const float* in, float* out, std::uint8_t* where,
                         int lanes) {
  for (int y = 0; y < p.out_height; ++y)
    for (int x = 0; x < p.out_width; ++x) {
      const int top = y * p.stride - p.padding, left = x * p.stride - p.padding;
      alignas(32) float best[8];
      alignas(32) std::int32_t winner[8];
      std::fill_n(best, 8, p.relu ? 0.0f : -std::numeric_limits<float>::infinity());
      std::fill_n(winner, 8, kCut);
      for (int r = std::max(top, 0); r < std::min(top + p.kernel, p.in_height); ++r)
        for (int c = std::max(left, 0); c < std::min(left + p.kernel, p.in_width); ++c) {
          const float* value = in + (std::ptrdiff_t(r) * p.in_width + c) * 8;
          const std::int32_t tap = (r - top) * p.kernel + (c - left);
          for (int lane = 0; lane < 8; ++lane) {
            winner[lane] = value[lane] > best[lane] ? tap : winner[lane];
            best[lane] = value[lane] > best[lane] ? value[lane] : best[lane];
          }
        }
      const std::ptrdiff_t at = std::ptrdiff_t(y) * p.out_width + x;
      std::memcpy(out + at * 8, best, std::size_t(lanes) * sizeof(float));
      if (where)
        for (int lane = 0; lane < 8; ++lane) where[at * 8 + lane] = std::uint8_t(winner[lane]);
    }
}

template <>
void max_pool_backward<8>(const PoolPlane& p, float* in_gradient, const float* gradient,
                          const std::uint8_t* where, int lanes) {
  if (!p.tiles) std::fill_n(in_gradient, std::ptrdiff_t(p.in_height) * p.in_width * 8, 0.0f);
  for (int y = 0; y < p.out_height; ++y)
    for (int x = 0; x < p.out_width; ++x) {
      const int top = y * p.stride - p.padding, left = x * p.stride - p.padding;
      const std::ptrdiff_t at = std::ptrdiff_t(y) * p.out_width + x;
      alignas(32) float given[8] = {};
      std::memcpy(given, gradient + at * 8, std::size_t(lanes) * sizeof(float));
      for (int r = std::max(top, 0); r < std::min(top + p.kernel, p.in_height); ++r)
        for (int c = std::max(left, 0); c < std::min(left + p.kernel, p.in_width); ++c) {
          float* target = in_gradient + (std::ptrdiff_t(r) * p.in_width + c) * 8;
          const std::int32_t tap = (r - top) * p.kernel + (c - left);
          for (int lane = 0; lane < 8; ++lane) {
            const float share = where[at * 8 + lane] == tap ? given[lane] : 0.0f;
            target[lane] = p.tiles ? share : target[lane] + share;
          }
        }
    }
}

}  // namespace convoy::onednn
