// Max pooling of a plane for one width of vectors, V, which pool_planes*.cc define: each position
// of a plane is one V::Floats. Only for those files, which are built for different CPUs: nothing
// here may be shared between them, so V is of an unnamed namespace.
#pragma once

#include "kernels/onednn/pool_planes.h"

namespace convoy::onednn {

// The taps of output (y, x)'s window that lie inside the map: body(position, tap).
template <typename V, typename Body>
inline void for_taps(const PoolPlane& p, int y, int x, Body&& body) {
  const int top = y * p.stride - p.padding, left = x * p.stride - p.padding;
  const int first_row = top > 0 ? top : 0, first_column = left > 0 ? left : 0;
  const int bottom = top + p.kernel < p.in_height ? top + p.kernel : p.in_height;
  const int right = left + p.kernel < p.in_width ? left + p.kernel : p.in_width;
  for (int r = first_row; r < bottom; ++r)
    for (int c = first_column; c < right; ++c)
      body((long(r) * p.in_width + c) * V::kLanes, (r - top) * p.kernel + (c - left));
}

template <typename V>
void forward_plane(const PoolPlane& p, const float* in, float* out, std::uint8_t* where,
                   int lanes) {
  for (int y = 0; y < p.out_height; ++y)
    for (int x = 0; x < p.out_width; ++x) {
      typename V::Floats best = V::same(p.relu ? 0.0f : -__builtin_inff());
      typename V::Words winner = V::same(int(kCut));
      for_taps<V>(p, y, x,
                  [&](long at, int tap) { V::keep_larger(V::load(in + at), tap, best, winner); });
      const long at = (long(y) * p.out_width + x) * V::kLanes;
      V::store(out + at, best, lanes);
      if (where) V::store_bytes(where + at, winner);
    }
}

template <typename V>
void backward_plane(const PoolPlane& p, float* in_gradient, const float* gradient,
                    const std::uint8_t* where, int lanes) {
  if (!p.tiles)
    for (long i = 0; i < long(p.in_height) * p.in_width; ++i)
      V::store(in_gradient + i * V::kLanes, V::same(0.0f), V::kLanes);
  for (int y = 0; y < p.out_height; ++y)
    for (int x = 0; x < p.out_width; ++x) {
      const long at = (long(y) * p.out_width + x) * V::kLanes;
      const typename V::Floats given = V::load(gradient + at, lanes);
      const typename V::Words winner = V::load_bytes(where + at);
      for_taps<V>(p, y, x, [&](long to, int tap) {
        const typename V::Floats share = V::where_equal(winner, tap, given);
        V::store(in_gradient + to, p.tiles ? share : share + V::load(in_gradient + to), V::kLanes);
      });
    }
}

}  // namespace convoy::onednn
