// Turning 32 x 32 blocks of bf16 for tile products. Only for kernels (*_amx.cc).
#pragma once

#include "kernels/amx/lanes.h"

namespace convoy::amx {

// Rows of bf16 or, narrowed on the way, of f32.
CONVOY_INLINE Numbers narrow_load(const Bf16* p) { return load(p); }
CONVOY_INLINE Numbers narrow_load(const float* p) { return narrow(load_row(p)); }

// 32 rows x 32 columns -> two tiles [16 row pairs][16 columns][2]: the right-hand side of a product
// over rows.
template <typename Number>
CONVOY_INLINE void interleave_rows(const Interleave& x, const Number* from, Bf16* to) {
  for (int i = 0; i < 16; ++i) {
    const Numbers a = narrow_load(from + i * 64), b = narrow_load(from + i * 64 + 32);
    store(to + i * 32, x.low(a, b));
    store(to + 512 + i * 32, x.high(a, b));
  }
}

// The same for the first `rows` (even) rows; the others count as zero.
CONVOY_INLINE void interleave_rows(const Interleave& x, const Bf16* from, int rows, Bf16* to) {
  if (rows == 32) return interleave_rows(x, from, to);
  for (int i = 0; i < 16; ++i) {
    const bool real = 2 * i < rows;
    const Numbers a = real ? load(from + i * 64) : zero_numbers();
    const Numbers b = real ? load(from + i * 64 + 32) : zero_numbers();
    store(to + i * 32, x.low(a, b));
    store(to + 512 + i * 32, x.high(a, b));
  }
}

// The same for 32 rows that lie in four places, 8 in each.
CONVOY_INLINE void interleave_rows(const Interleave& x, const Bf16* const from[4], Bf16* to) {
  for (int i = 0; i < 16; ++i) {
    const Bf16* p = from[i / 4] + i % 4 * 64;
    const Numbers a = load(p), b = load(p + 32);
    store(to + i * 32, x.low(a, b));
    store(to + 512 + i * 32, x.high(a, b));
  }
}

// Transposes 16 x 16 words of 32 bits in registers.
CONVOY_INLINE void transpose_words(Numbers* r) {
  Numbers t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = first_words(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = last_words(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = first_doubles(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = last_doubles(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = first_doubles(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = last_doubles(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = even_quarters(r[i], r[4 + i]);
    t[4 + i] = odd_quarters(r[i], r[4 + i]);
    t[8 + i] = even_quarters(r[8 + i], r[12 + i]);
    t[12 + i] = odd_quarters(r[8 + i], r[12 + i]);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = even_quarters(t[i], t[8 + i]);
    r[8 + i] = odd_quarters(t[i], t[8 + i]);
    r[4 + i] = even_quarters(t[4 + i], t[12 + i]);
    r[12 + i] = odd_quarters(t[4 + i], t[12 + i]);
  }
}

// 32 rows x 32 columns -> two tiles [16 column pairs][16 rows][2]: the right-hand side of a product
// over columns.
template <typename Number>
CONVOY_INLINE void turn_pairs(const Number* from, Bf16* to) {
  Numbers r[16];
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 16; ++i) r[i] = narrow_load(from + half * 512 + i * 32);
    transpose_words(r);
    for (int i = 0; i < 16; ++i) store(to + half * 512 + i * 32, r[i]);
  }
}

// Columns 16 * half to 16 * half + 15 of 32 rows (8 from each of four places) -> [32 columns][32
// rows]: the left-hand side of a product over rows.
CONVOY_INLINE void turn_half(const Interleave& x, const Bf16* const from[4], int half, Bf16* to) {
  Numbers r[16];
  for (int i = 0; i < 16; ++i) {
    const Bf16* p = from[i / 4] + i % 4 * 64;
    r[i] = half ? x.high(load(p), load(p + 32)) : x.low(load(p), load(p + 32));
  }
  transpose_words(r);
  for (int i = 0; i < 16; ++i) store(to + half * 512 + i * 32, r[i]);
}

CONVOY_INLINE void turn_rows(const Interleave& x, const Bf16* const from[4], Bf16* to) {
  turn_half(x, from, 0, to);
  turn_half(x, from, 1, to);
}

}  // namespace convoy::amx
