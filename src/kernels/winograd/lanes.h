// Eight channels at a time, on AVX2.
#pragma once

#include <immintrin.h>

#include <cstddef>

#include "kernels/winograd/product.h"
#include "kernels/winograd/transforms.h"

namespace convoy::winograd {

using Lanes = __m256;
constexpr int kLanes = 8;

#define CONVOY_LANES static inline __attribute__((always_inline))

// What transforms.h and product.h ask of a vector.
struct Eight {
  using Vector = Lanes;
  static constexpr int kLanes = winograd::kLanes;
  CONVOY_LANES Lanes load(const float* p) { return _mm256_loadu_ps(p); }
  CONVOY_LANES void store(float* p, Lanes v) { _mm256_storeu_ps(p, v); }
  CONVOY_LANES Lanes same(float v) { return _mm256_set1_ps(v); }
  CONVOY_LANES Lanes times(float c, Lanes a) { return same(c) * a; }
  CONVOY_LANES Lanes scaled(float c, Lanes a, Lanes b) { return _mm256_fmadd_ps(same(c), a, b); }
};

// rows[i][j] becomes rows[j][i].
CONVOY_LANES void transpose(Lanes rows[kLanes]) {
  Lanes pairs[kLanes], fours[kLanes];
  for (int i = 0; i < kLanes; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < kLanes; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0x44);
      fours[i + 2 * j + 1] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0xee);
    }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
}

constexpr int kRows = 6;  // of a product at a time; with two vectors these fill 12 of 16 registers
constexpr int kPanel = 16;  // lanes of two vectors

// A product of any number of rows; `lanes` is 8 or 16.
static inline void multiply(Operands o, int rows, int lanes, int depth, bool add) {
  using Block = void (*)(const Operands&, int, bool);
  static constexpr Block kBlocks[2][kRows] = {
      {multiply_block<Eight, 1, 1>, multiply_block<Eight, 2, 1>, multiply_block<Eight, 3, 1>,
       multiply_block<Eight, 4, 1>, multiply_block<Eight, 5, 1>, multiply_block<Eight, 6, 1>},
      {multiply_block<Eight, 1, 2>, multiply_block<Eight, 2, 2>, multiply_block<Eight, 3, 2>,
       multiply_block<Eight, 4, 2>, multiply_block<Eight, 5, 2>, multiply_block<Eight, 6, 2>}};
  for (int row = 0; row < rows; row += kRows) {
    const int now = rows - row < kRows ? rows - row : kRows;
    kBlocks[lanes / kLanes - 1][now - 1](o, depth, add);
    o.left += kRows * o.left_row;
    o.sums += kRows * o.sums_row;
  }
}

}  // namespace convoy::winograd
