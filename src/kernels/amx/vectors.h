// 16 floats and 32 numbers of 16 bits at a time. Only for kernels (*_amx.cc), which are built three
// times: for CPUs with AMX and for those with AVX512_BF16 alone (CONVOY_ON_AVX512) from what
// follows, and for all others (CONVOY_ON_AVX2) from a file that has the same names.
#pragma once

#define CONVOY_INLINE static inline __attribute__((always_inline))

#ifdef CONVOY_ON_AVX2
#include "kernels/amx_avx2/vectors.h"
#else

// g++ 12 warns of its own intrinsics (bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "kernels/amx/layout.h"

namespace convoy::amx {

using Floats = __m512;          // 16
using Numbers = __m512i;        // 32 of 16 bits, mostly bf16
constexpr int kRegisters = 32;  // that hold one of either

CONVOY_INLINE Floats zero_floats() { return _mm512_setzero_ps(); }
CONVOY_INLINE Floats same_floats(float v) { return _mm512_set1_ps(v); }
CONVOY_INLINE Floats load_floats(const float* p) { return _mm512_loadu_ps(p); }
CONVOY_INLINE Floats load_floats(std::uint32_t lanes, const float* p) {  // others are zero
  return _mm512_maskz_loadu_ps(__mmask16(lanes), p);
}
CONVOY_INLINE void store_floats(float* p, Floats v) { _mm512_storeu_ps(p, v); }
CONVOY_INLINE void store_floats(std::uint32_t lanes, float* p, Floats v) {
  _mm512_mask_storeu_ps(p, __mmask16(lanes), v);
}
CONVOY_INLINE void stream_floats(float* p, Floats v) { _mm512_stream_ps(p, v); }
CONVOY_INLINE void store_doubles(double* p, Floats v) {
  _mm512_storeu_pd(p, _mm512_cvtps_pd(_mm512_castps512_ps256(v)));
  _mm512_storeu_pd(p + 8, _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)));
}
CONVOY_INLINE Floats plus(Floats a, Floats b) { return _mm512_add_ps(a, b); }
CONVOY_INLINE Floats minus(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
CONVOY_INLINE Floats times(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
CONVOY_INLINE Floats fused(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
CONVOY_INLINE Floats largest(Floats a, Floats b) { return _mm512_max_ps(a, b); }
CONVOY_INLINE Floats keep(std::uint32_t lanes, Floats v) {  // others become zero
  return _mm512_maskz_mov_ps(__mmask16(lanes), v);
}
CONVOY_INLINE std::uint32_t positive(Floats v) {
  return _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GT_OQ);
}

CONVOY_INLINE Numbers zero_numbers() { return _mm512_setzero_si512(); }
CONVOY_INLINE Numbers same_numbers(int v) { return _mm512_set1_epi16(short(v)); }
CONVOY_INLINE Numbers load(const Bf16* p) { return _mm512_load_si512(p); }
CONVOY_INLINE void store(Bf16* p, Numbers v) { _mm512_store_si512(p, v); }
CONVOY_INLINE void store(std::uint32_t lanes, Bf16* p, Numbers v) {
  _mm512_mask_storeu_epi16(p, lanes, v);
}
CONVOY_INLINE Numbers keep(std::uint32_t lanes, Numbers v) {
  return _mm512_maskz_mov_epi16(lanes, v);
}
CONVOY_INLINE Numbers choose(std::uint32_t lanes, Numbers there, Numbers elsewhere) {
  return _mm512_mask_mov_epi16(elsewhere, lanes, there);
}
CONVOY_INLINE Numbers either(Numbers a, Numbers b) { return _mm512_or_si512(a, b); }
CONVOY_INLINE Numbers minus(Numbers a, Numbers b) { return _mm512_sub_epi16(a, b); }
CONVOY_INLINE Numbers largest(Numbers a, Numbers b) { return _mm512_max_epi16(a, b); }
CONVOY_INLINE std::uint32_t larger(Numbers a, Numbers b) { return _mm512_cmpgt_epi16_mask(a, b); }
// bf16 as whole numbers of the same order, and back.
CONVOY_INLINE Numbers ordered(Numbers v) {
  return _mm512_xor_si512(v, _mm512_and_si512(_mm512_srai_epi16(v, 15), _mm512_set1_epi16(0x7fff)));
}
// Lane l of the result is lane from[l] mod 32, where `lanes` has it.
CONVOY_INLINE Numbers pick(std::uint32_t lanes, Numbers from, Numbers v) {
  return _mm512_maskz_permutexvar_epi16(lanes, from, v);
}

CONVOY_INLINE Floats widen_half(__m256i v) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}
CONVOY_INLINE Floats widen_low(Numbers v) { return widen_half(_mm512_castsi512_si256(v)); }
CONVOY_INLINE Floats widen_high(Numbers v) { return widen_half(_mm512_extracti64x4_epi64(v, 1)); }
// To the nearest, ties to even; what has no whole mantissa in f32 becomes zero.
CONVOY_INLINE Numbers narrow(Floats low, Floats high) {
  return (Numbers)_mm512_cvtne2ps_pbh(high, low);
}

// The low bytes of 32 numbers, and which of 32 bytes are equal to one.
CONVOY_INLINE void store_bytes(std::uint8_t* p, Numbers v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi16_epi8(v));
}
CONVOY_INLINE std::uint32_t equal_bytes(const std::uint8_t* p, int byte) {
  return _mm256_cmpeq_epi8_mask(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
                                _mm256_set1_epi8(char(byte)));
}

// Two rows as pairs (a0 b0 a1 b1 ...) of lanes 0 to 15 and 16 to 31.
struct Interleave {
  Numbers low_lanes, high_lanes;
  Interleave() {
    alignas(64) std::uint16_t l[32], h[32];
    for (int c = 0; c < 16; ++c) {
      l[2 * c] = std::uint16_t(c);
      l[2 * c + 1] = std::uint16_t(32 + c);
      h[2 * c] = std::uint16_t(16 + c);
      h[2 * c + 1] = std::uint16_t(48 + c);
    }
    low_lanes = _mm512_load_si512(l);
    high_lanes = _mm512_load_si512(h);
  }
  inline __attribute__((always_inline)) Numbers low(Numbers a, Numbers b) const {
    return _mm512_permutex2var_epi16(a, low_lanes, b);
  }
  inline __attribute__((always_inline)) Numbers high(Numbers a, Numbers b) const {
    return _mm512_permutex2var_epi16(a, high_lanes, b);
  }
};

// Within each quarter: the first or last two words of both, word by word; the first or last double
// word of both.
CONVOY_INLINE Numbers first_words(Numbers a, Numbers b) { return _mm512_unpacklo_epi32(a, b); }
CONVOY_INLINE Numbers last_words(Numbers a, Numbers b) { return _mm512_unpackhi_epi32(a, b); }
CONVOY_INLINE Numbers first_doubles(Numbers a, Numbers b) { return _mm512_unpacklo_epi64(a, b); }
CONVOY_INLINE Numbers last_doubles(Numbers a, Numbers b) { return _mm512_unpackhi_epi64(a, b); }
// Quarters 0 and 2, or 1 and 3, of a and then of b.
CONVOY_INLINE Numbers even_quarters(Numbers a, Numbers b) {
  return _mm512_shuffle_i32x4(a, b, 0x88);
}
CONVOY_INLINE Numbers odd_quarters(Numbers a, Numbers b) {
  return _mm512_shuffle_i32x4(a, b, 0xdd);
}

}  // namespace convoy::amx

#endif
