// Turning 32 x 32 blocks of bf16 for tile products. Only for files that are built for AMX
// (*_amx.cc).
#pragma once

#include "kernels/amx/lanes.h"

namespace convoy::amx {

// Index vectors that interleave two rows: (a0 b0 a1 b1 ...) of lanes 0 to 15 and 16 to 31.
struct Interleave {
  __m512i low, high;
  Interleave() {
    alignas(64) std::uint16_t l[32], h[32];
    for (int c = 0; c < 16; ++c) {
      l[2 * c] = std::uint16_t(c);
      l[2 * c + 1] = std::uint16_t(32 + c);
      h[2 * c] = std::uint16_t(16 + c);
      h[2 * c + 1] = std::uint16_t(48 + c);
    }
    low = _mm512_load_si512(l);
    high = _mm512_load_si512(h);
  }
};

// Rows of bf16 or, narrowed on the way, of f32.
CONVOY_INLINE __m512i narrow_load(const Bf16* p) { return load(p); }
CONVOY_INLINE __m512i narrow_load(const float* p) { return narrow(load_row(p)); }

// 32 rows x 32 columns -> two tiles [16 row pairs][16 columns][2]: the right-hand side of a product
// over rows.
template <typename Number>
CONVOY_INLINE void interleave_rows(const Interleave& x, const Number* from, Bf16* to) {
  for (int i = 0; i < 16; ++i) {
    const __m512i a = narrow_load(from + i * 64), b = narrow_load(from + i * 64 + 32);
    store(to + i * 32, _mm512_permutex2var_epi16(a, x.low, b));
    store(to + 512 + i * 32, _mm512_permutex2var_epi16(a, x.high, b));
  }
}

// The same for the first `rows` (even) rows; the others count as zero.
CONVOY_INLINE void interleave_rows(const Interleave& x, const Bf16* from, int rows, Bf16* to) {
  if (rows == 32) return interleave_rows(x, from, to);
  for (int i = 0; i < 16; ++i) {
    const bool real = 2 * i < rows;
    const __m512i a = real ? load(from + i * 64) : _mm512_setzero_si512();
    const __m512i b = real ? load(from + i * 64 + 32) : _mm512_setzero_si512();
    store(to + i * 32, _mm512_permutex2var_epi16(a, x.low, b));
    store(to + 512 + i * 32, _mm512_permutex2var_epi16(a, x.high, b));
  }
}

// The same for 32 rows that lie in four places, 8 in each.
CONVOY_INLINE void interleave_rows(const Interleave& x, const Bf16* const from[4], Bf16* to) {
  for (int i = 0; i < 16; ++i) {
    const Bf16* p = from[i / 4] + i % 4 * 64;
    const __m512i a = load(p), b = load(p + 32);
    store(to + i * 32, _mm512_permutex2var_epi16(a, x.low, b));
    store(to + 512 + i * 32, _mm512_permutex2var_epi16(a, x.high, b));
  }
}

// Transposes 16 x 16 words of 32 bits in registers.
CONVOY_INLINE void transpose_words(__m512i* r) {
  __m512i t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
    r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
    r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
    r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

// 32 rows x 32 columns -> two tiles [16 column pairs][16 rows][2]: the right-hand side of a product
// over columns.
template <typename Number>
CONVOY_INLINE void turn_pairs(const Number* from, Bf16* to) {
  __m512i r[16];
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 16; ++i) r[i] = narrow_load(from + half * 512 + i * 32);
    transpose_words(r);
    for (int i = 0; i < 16; ++i) store(to + half * 512 + i * 32, r[i]);
  }
}

// Columns 16 * half to 16 * half + 15 of 32 rows (8 from each of four places) -> [32 columns][32
// rows]: the left-hand side of a product over rows.
CONVOY_INLINE void turn_half(const Interleave& x, const Bf16* const from[4], int half, Bf16* to) {
  __m512i r[16];
  const __m512i index = half ? x.high : x.low;
  for (int i = 0; i < 16; ++i) {
    const Bf16* p = from[i / 4] + i % 4 * 64;
    r[i] = _mm512_permutex2var_epi16(load(p), index, load(p + 32));
  }
  transpose_words(r);
  for (int i = 0; i < 16; ++i) store(to + half * 512 + i * 32, r[i]);
}

CONVOY_INLINE void turn_rows(const Interleave& x, const Bf16* const from[4], Bf16* to) {
  turn_half(x, from, 0, to);
  turn_half(x, from, 1, to);
}

}  // namespace convoy::amx
