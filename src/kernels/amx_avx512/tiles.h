// Tiles for CPUs that have none but multiply pairs of bf16 (AVX512_BF16): factors and sums are
// where they lie; a product takes its sums into registers and back. Included by kernels/amx/tiles.h
// alone.
//
// A factor is read when it is multiplied, not when it is loaded: what it lies in must not change in
// between.
#pragma once

#include <immintrin.h>

namespace convoy::amx {

struct Sums {
  float* rows;  // 16 of 16, 32 numbers apart
  bool fresh;   // nothing was added yet, and what is there does not count
};
struct Factor {
  const char* rows;  // 16 of 64 bytes
};
static thread_local Sums t_sums[8];
static thread_local Factor t_factors[8];

static inline void configure_full_tiles() {}
static inline void release_tiles() {}

template <int kTile, bool kStream>
CONVOY_INLINE void load_tile(const void* rows) {
  t_factors[kTile].rows = static_cast<const char*>(rows);
}

template <int kTile>
CONVOY_INLINE void begin_sums(float* there, bool fresh) {
  t_sums[kTile] = {there, fresh};
}
template <int kTile>
CONVOY_INLINE void end_sums(float* there) {
  if (!t_sums[kTile].fresh) return;
  for (int r = 0; r < 16; ++r) _mm512_storeu_ps(there + r * 32, _mm512_setzero_ps());
}

// The pair of numbers k of a row, sixteen times.
CONVOY_INLINE __m512bh same_pair(const char* row, int k) {
  int pair;
  __builtin_memcpy(&pair, row + k * 4, sizeof pair);
  return (__m512bh)_mm512_set1_epi32(pair);
}
static __attribute__((noinline)) void add_product(Sums& sums, Factor left, Factor right) {
  __m512 sum[16];
  if (sums.fresh) {
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r) sum[r] = _mm512_setzero_ps();
  } else {
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r) sum[r] = _mm512_loadu_ps(sums.rows + r * 32);
  }
#pragma GCC unroll 2
  for (int k = 0; k < 16; ++k) {
    const auto pairs = (__m512bh)_mm512_loadu_si512(right.rows + k * 64);
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r)
      sum[r] = _mm512_dpbf16_ps(sum[r], pairs, same_pair(left.rows + r * 64, k));
  }
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) _mm512_storeu_ps(sums.rows + r * 32, sum[r]);
  sums.fresh = false;
}
template <int kSum, int kLeft, int kRight>
CONVOY_INLINE void multiply_tiles() {
  add_product(t_sums[kSum], t_factors[kLeft], t_factors[kRight]);
}

}  // namespace convoy::amx
