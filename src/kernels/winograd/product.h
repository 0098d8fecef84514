// The one product all passes are made of: sums[row][lane] (+)= left[row][k] * right[k][lane] for a
// few rows and one or two vectors of lanes, all in registers. V: see transforms.h; it also loads
// and stores V::kLanes floats.
#pragma once

#include <cstddef>

namespace convoy::winograd {

struct Operands {
  const float* left;
  std::size_t left_row, left_step;  // floats from row to row, and from k to k
  const float* right;
  std::size_t right_step;
  float* sums;
  std::size_t sums_row;
};

// Every sum is made in the order of k, whatever the rows beside it.
template <typename V, int kRows, int kVectors>
static void multiply_block(const Operands& o, int depth, bool add) {
  using T = typename V::Vector;
  T sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = add ? V::load(o.sums + r * o.sums_row + v * V::kLanes) : V::same(0);
  const float* left = o.left;
  const float* right = o.right;
  for (int k = 0; k < depth; ++k, left += o.left_step, right += o.right_step) {
    T b[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) b[v] = V::load(right + v * V::kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const float a = left[r * o.left_row];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] = V::scaled(a, b[v], sums[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      V::store(o.sums + r * o.sums_row + v * V::kLanes, sums[r][v]);
}

}  // namespace convoy::winograd
