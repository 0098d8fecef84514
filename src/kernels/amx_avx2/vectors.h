// What kernels/amx/vectors.h has, from pairs of 256-bit vectors. Included by it alone.
#pragma once

#include <immintrin.h>

#include "kernels/amx/layout.h"

namespace convoy::amx {

struct Floats {
  __m256 low, high;
};
struct Numbers {
  __m256i low, high;
};

constexpr int kRegisters = 8;  // pairs of registers

// All bits of lane l where bit l of `lanes` is set.
CONVOY_INLINE __m256i spread_words(std::uint32_t lanes) {
  const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(int(lanes)), bit), bit);
}
CONVOY_INLINE __m256i spread_numbers(std::uint32_t lanes) {
  const __m256i bit = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096,
                                        8192, 16384, short(32768));
  return _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(short(lanes)), bit), bit);
}
// And back: a bit for each 16-bit lane.
CONVOY_INLINE std::uint32_t gather_bits(__m256i low, __m256i high) {
  const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);
  return std::uint32_t(_mm256_movemask_epi8(bytes));
}

CONVOY_INLINE Floats zero_floats() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
CONVOY_INLINE Floats same_floats(float v) { return {_mm256_set1_ps(v), _mm256_set1_ps(v)}; }
CONVOY_INLINE Floats load_floats(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
CONVOY_INLINE Floats load_floats(std::uint32_t lanes, const float* p) {
  return {_mm256_maskload_ps(p, spread_words(lanes)),
          _mm256_maskload_ps(p + 8, spread_words(lanes >> 8))};
}
CONVOY_INLINE void store_floats(float* p, Floats v) {
  _mm256_storeu_ps(p, v.low);
  _mm256_storeu_ps(p + 8, v.high);
}
CONVOY_INLINE void store_floats(std::uint32_t lanes, float* p, Floats v) {
  _mm256_maskstore_ps(p, spread_words(lanes), v.low);
  _mm256_maskstore_ps(p + 8, spread_words(lanes >> 8), v.high);
}
CONVOY_INLINE void stream_floats(float* p, Floats v) {
  _mm256_stream_ps(p, v.low);
  _mm256_stream_ps(p + 8, v.high);
}
CONVOY_INLINE void store_doubles(double* p, Floats v) {
  _mm256_storeu_pd(p, _mm256_cvtps_pd(_mm256_castps256_ps128(v.low)));
  _mm256_storeu_pd(p + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(v.low, 1)));
  _mm256_storeu_pd(p + 8, _mm256_cvtps_pd(_mm256_castps256_ps128(v.high)));
  _mm256_storeu_pd(p + 12, _mm256_cvtps_pd(_mm256_extractf128_ps(v.high, 1)));
}
CONVOY_INLINE Floats plus(Floats a, Floats b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
CONVOY_INLINE Floats minus(Floats a, Floats b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
CONVOY_INLINE Floats times(Floats a, Floats b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
CONVOY_INLINE Floats fused(Floats a, Floats b, Floats c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
CONVOY_INLINE Floats largest(Floats a, Floats b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
CONVOY_INLINE Floats keep(std::uint32_t lanes, Floats v) {
  return {_mm256_and_ps(v.low, _mm256_castsi256_ps(spread_words(lanes))),
          _mm256_and_ps(v.high, _mm256_castsi256_ps(spread_words(lanes >> 8)))};
}
CONVOY_INLINE std::uint32_t positive(Floats v) {
  const __m256 zero = _mm256_setzero_ps();
  return std::uint32_t(_mm256_movemask_ps(_mm256_cmp_ps(v.low, zero, _CMP_GT_OQ)) |
                       _mm256_movemask_ps(_mm256_cmp_ps(v.high, zero, _CMP_GT_OQ)) << 8);
}

CONVOY_INLINE Numbers zero_numbers() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
CONVOY_INLINE Numbers same_numbers(int v) {
  return {_mm256_set1_epi16(short(v)), _mm256_set1_epi16(short(v))};
}
CONVOY_INLINE Numbers load(const Bf16* p) {
  const auto* from = reinterpret_cast<const __m256i*>(p);
  return {_mm256_load_si256(from), _mm256_load_si256(from + 1)};
}
CONVOY_INLINE void store(Bf16* p, Numbers v) {
  auto* to = reinterpret_cast<__m256i*>(p);
  _mm256_store_si256(to, v.low);
  _mm256_store_si256(to + 1, v.high);
}
CONVOY_INLINE void store(std::uint32_t lanes, Bf16* p, Numbers v) {
  alignas(64) Bf16 all[32];
  store(all, v);
  for (int lane = 0; lane < 32; ++lane)
    if (lanes >> lane & 1) p[lane] = all[lane];
}
CONVOY_INLINE Numbers keep(std::uint32_t lanes, Numbers v) {
  return {_mm256_and_si256(v.low, spread_numbers(lanes)),
          _mm256_and_si256(v.high, spread_numbers(lanes >> 16))};
}
CONVOY_INLINE Numbers choose(std::uint32_t lanes, Numbers there, Numbers elsewhere) {
  return {_mm256_blendv_epi8(elsewhere.low, there.low, spread_numbers(lanes)),
          _mm256_blendv_epi8(elsewhere.high, there.high, spread_numbers(lanes >> 16))};
}
CONVOY_INLINE Numbers either(Numbers a, Numbers b) {
  return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}
CONVOY_INLINE Numbers minus(Numbers a, Numbers b) {
  return {_mm256_sub_epi16(a.low, b.low), _mm256_sub_epi16(a.high, b.high)};
}
CONVOY_INLINE Numbers largest(Numbers a, Numbers b) {
  return {_mm256_max_epi16(a.low, b.low), _mm256_max_epi16(a.high, b.high)};
}
CONVOY_INLINE std::uint32_t larger(Numbers a, Numbers b) {
  return gather_bits(_mm256_cmpgt_epi16(a.low, b.low), _mm256_cmpgt_epi16(a.high, b.high));
}
CONVOY_INLINE __m256i ordered_half(__m256i v) {
  return _mm256_xor_si256(v, _mm256_and_si256(_mm256_srai_epi16(v, 15), _mm256_set1_epi16(0x7fff)));
}
CONVOY_INLINE Numbers ordered(Numbers v) { return {ordered_half(v.low), ordered_half(v.high)}; }
CONVOY_INLINE Numbers pick(std::uint32_t lanes, Numbers from, Numbers v) {
  alignas(64) Bf16 index[32], all[32];
  store(index, from);
  store(all, v);
  for (int lane = 0; lane < 32; ++lane)
    index[lane] = lanes >> lane & 1 ? all[index[lane] & 31] : Bf16(0);
  return load(index);
}

CONVOY_INLINE __m256 widen_quarter(__m128i v) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}
CONVOY_INLINE Floats widen_half(__m256i v) {
  return {widen_quarter(_mm256_castsi256_si128(v)), widen_quarter(_mm256_extracti128_si256(v, 1))};
}
CONVOY_INLINE Floats widen_low(Numbers v) { return widen_half(v.low); }
CONVOY_INLINE Floats widen_high(Numbers v) { return widen_half(v.high); }

// In the upper half of each word, rounded as the instruction does it.
CONVOY_INLINE __m256i round_words(__m256 v) {
  const __m256i bits = _mm256_castps_si256(v), exponent = _mm256_set1_epi32(0x7f800000);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i nearest = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const __m256i tiny = _mm256_cmpeq_epi32(_mm256_and_si256(bits, exponent), _mm256_setzero_si256());
  const __m256i sign_if_tiny = _mm256_and_si256(tiny, _mm256_set1_epi32(0x7fffffff));
  return _mm256_andnot_si256(sign_if_tiny, _mm256_blendv_epi8(nearest, quiet, nan));
}
CONVOY_INLINE __m256i narrow_half(Floats v) {
  const __m256i packed = _mm256_packus_epi32(_mm256_srli_epi32(round_words(v.low), 16),
                                             _mm256_srli_epi32(round_words(v.high), 16));
  return _mm256_permute4x64_epi64(packed, 0xd8);
}
CONVOY_INLINE Numbers narrow(Floats low, Floats high) {
  return {narrow_half(low), narrow_half(high)};
}

CONVOY_INLINE void store_bytes(std::uint8_t* p, Numbers v) {
  const __m256i byte = _mm256_set1_epi16(0xff);
  const __m256i packed =
      _mm256_packus_epi16(_mm256_and_si256(v.low, byte), _mm256_and_si256(v.high, byte));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}
CONVOY_INLINE std::uint32_t equal_bytes(const std::uint8_t* p, int byte) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return std::uint32_t(
      _mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(char(byte)))));
}

CONVOY_INLINE Numbers interleave_half(__m256i a, __m256i b) {
  const __m256i first = _mm256_unpacklo_epi16(a, b), last = _mm256_unpackhi_epi16(a, b);
  return {_mm256_permute2x128_si256(first, last, 0x20),
          _mm256_permute2x128_si256(first, last, 0x31)};
}
struct Interleave {
  inline __attribute__((always_inline)) Numbers low(Numbers a, Numbers b) const {
    return interleave_half(a.low, b.low);
  }
  inline __attribute__((always_inline)) Numbers high(Numbers a, Numbers b) const {
    return interleave_half(a.high, b.high);
  }
};

CONVOY_INLINE Numbers first_words(Numbers a, Numbers b) {
  return {_mm256_unpacklo_epi32(a.low, b.low), _mm256_unpacklo_epi32(a.high, b.high)};
}
CONVOY_INLINE Numbers last_words(Numbers a, Numbers b) {
  return {_mm256_unpackhi_epi32(a.low, b.low), _mm256_unpackhi_epi32(a.high, b.high)};
}
CONVOY_INLINE Numbers first_doubles(Numbers a, Numbers b) {
  return {_mm256_unpacklo_epi64(a.low, b.low), _mm256_unpacklo_epi64(a.high, b.high)};
}
CONVOY_INLINE Numbers last_doubles(Numbers a, Numbers b) {
  return {_mm256_unpackhi_epi64(a.low, b.low), _mm256_unpackhi_epi64(a.high, b.high)};
}
CONVOY_INLINE Numbers even_quarters(Numbers a, Numbers b) {
  return {_mm256_permute2x128_si256(a.low, a.high, 0x20),
          _mm256_permute2x128_si256(b.low, b.high, 0x20)};
}
CONVOY_INLINE Numbers odd_quarters(Numbers a, Numbers b) {
  return {_mm256_permute2x128_si256(a.low, a.high, 0x31),
          _mm256_permute2x128_si256(b.low, b.high, 0x31)};
}

}  // namespace convoy::amx
