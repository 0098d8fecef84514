// Tiles for CPUs that have none, in memory. Sums are taken in the order in which the instruction
// takes them: over the even and the odd numbers of a row apart, then together, then to what is
// there. It takes tiny numbers for zero, as all our threads do (parallel.cc). Included by
// kernels/amx/tiles.h alone.
#pragma once

#include <immintrin.h>

namespace convoy::amx {

// A factor: numbers 2k and 2k + 1 of each row, widened when they are loaded.
struct Tile {
  float even[16][16];
  float odd[16][16];
};
alignas(64) static thread_local Tile t_tiles[8];
// Sums are where they lie.
struct Sums {
  float* rows;  // 16 of 16, 32 numbers apart
};
static thread_local Sums t_sums[8];

static inline void configure_full_tiles() {}
static inline void release_tiles() {}

static void widen_tile(const void* rows, Tile& tile) {
  const auto* from = static_cast<const __m256i*>(rows);
  const __m256i upper = _mm256_set1_epi32(int(0xffff0000));
  for (int r = 0; r < 16; ++r) {
    for (int half = 0; half < 2; ++half) {
      const __m256i pairs = _mm256_loadu_si256(from++);
      _mm256_store_ps(tile.even[r] + half * 8, _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)));
      _mm256_store_ps(tile.odd[r] + half * 8, _mm256_castsi256_ps(_mm256_and_si256(pairs, upper)));
    }
  }
}
template <int kTile, bool kStream>
CONVOY_INLINE void load_tile(const void* rows) {
  widen_tile(rows, t_tiles[kTile]);
}

template <int kTile>
CONVOY_INLINE void begin_sums(float* there, bool fresh) {
  t_sums[kTile].rows = there;
  for (int r = 0; fresh && r < 16; ++r)
    for (int c = 0; c < 16; c += 8) _mm256_storeu_ps(there + r * 32 + c, _mm256_setzero_ps());
}
template <int kTile>
CONVOY_INLINE void end_sums(float*) {}

// The product of two 16 x 16 matrices, four rows of it: eight sums, as many as a CPU must have
// under way, and six loads for eight products.
struct FourRows {
  __m256 row[4][2];
};
CONVOY_INLINE FourRows multiply_rows(const float (*left)[16], const float (*right)[16]) {
  FourRows sum = {};
  for (int k = 0; k < 16; ++k) {
    const __m256 low = _mm256_load_ps(right[k]), high = _mm256_load_ps(right[k] + 8);
    for (int r = 0; r < 4; ++r) {
      const __m256 factor = _mm256_broadcast_ss(&left[r][k]);
      sum.row[r][0] = _mm256_fmadd_ps(factor, low, sum.row[r][0]);
      sum.row[r][1] = _mm256_fmadd_ps(factor, high, sum.row[r][1]);
    }
  }
  return sum;
}
static void add_product(Sums sum, const Tile& left, const Tile& right) {
  for (int m = 0; m < 16; m += 4) {
    const FourRows even = multiply_rows(left.even + m, right.even);
    const FourRows odd = multiply_rows(left.odd + m, right.odd);
    for (int r = 0; r < 4; ++r) {
      for (int half = 0; half < 2; ++half) {
        float* to = sum.rows + (m + r) * 32 + half * 8;
        const __m256 both = _mm256_add_ps(even.row[r][half], odd.row[r][half]);
        _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), both));
      }
    }
  }
}
template <int kSum, int kLeft, int kRight>
CONVOY_INLINE void multiply_tiles() {
  add_product(t_sums[kSum], t_tiles[kLeft], t_tiles[kRight]);
}

}  // namespace convoy::amx
