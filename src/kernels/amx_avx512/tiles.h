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

// What of the left factors may be other than zero.
struct Limits {
  int rows = 32;   // of tiles 4 and 5 together
  int pairs = 16;  // of each row
};
static thread_local Limits t_limits;

static inline void configure_full_tiles() { t_limits = {}; }
static inline void release_tiles() {}
CONVOY_INLINE void limit_rows(int rows) { t_limits.rows = rows; }
CONVOY_INLINE void limit_pairs(int pairs) { t_limits.pairs = pairs; }

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
// Sums of 16 rows, of one right-hand factor or of two that lie side by side: kRows rows at a time
// stay in registers. Two factors share what is read of the left: with one, loads take longer than
// products do where the CPU makes two of either at a time.
template <int kRights>
static __attribute__((noinline)) void add_products(const Sums& into, const char* left,
                                                   const char* const (&right)[kRights],
                                                   Limits limits) {
  constexpr int kRows = 16 / kRights;
  const bool fresh = into.fresh;
  float* sums = into.rows;
  for (int first = 0; first < limits.rows; first += kRows, sums += kRows * 32, left += kRows * 64) {
    __m512 sum[kRows][kRights];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kRights; ++v)
        sum[r][v] = fresh ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + r * 32 + v * 16);
#pragma GCC unroll 1
    for (int k = 0; k < limits.pairs; ++k) {
      __m512bh pairs[kRights];
#pragma GCC unroll 2
      for (int v = 0; v < kRights; ++v) pairs[v] = (__m512bh)_mm512_loadu_si512(right[v] + k * 64);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const __m512bh same = same_pair(left + r * 64, k);
#pragma GCC unroll 2
        for (int v = 0; v < kRights; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], pairs[v], same);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kRights; ++v) _mm512_storeu_ps(sums + r * 32 + v * 16, sum[r][v]);
  }
}
// The limits of one tile. A first product makes zeros of the rows that others leave out.
template <int kLeft>
CONVOY_INLINE Limits limits_of(const Sums& sums) {
  const int rows = kLeft == 5 ? t_limits.rows - 16 : t_limits.rows;
  return {.rows = sums.fresh || rows > 16 ? 16 : rows, .pairs = t_limits.pairs};
}
template <int kSum, int kLeft, int kRight>
CONVOY_INLINE void multiply_tiles() {
  Sums& sums = t_sums[kSum];
  add_products<1>(sums, t_factors[kLeft].rows, {t_factors[kRight].rows}, limits_of<kLeft>(sums));
  sums.fresh = false;
}
// Sums kSum and kSum + 1 lie side by side.
template <int kSum, int kLeft>
CONVOY_INLINE void multiply_by_both() {
  Sums& sums = t_sums[kSum];
  add_products<2>(sums, t_factors[kLeft].rows, {t_factors[6].rows, t_factors[7].rows},
                  limits_of<kLeft>(sums));
  sums.fresh = t_sums[kSum + 1].fresh = false;
}
template <int kFirst, int kSecond>
CONVOY_INLINE void multiply_block() {
  multiply_by_both<0, kFirst>();
  multiply_by_both<2, kSecond>();
}
constexpr bool kLoadsCost = false;

}  // namespace convoy::amx
