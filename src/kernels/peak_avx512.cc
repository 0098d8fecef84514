#include "kernels/peak_avx512.h"

#include <immintrin.h>

namespace convoy {

namespace {

// Pairs of numbers of both signs between 2^-7 and 2, as in peak_amx.cc.
__m512i pairs_of(std::uint32_t seed) {
  alignas(64) std::uint16_t numbers[32];
  for (std::uint16_t& number : numbers) {
    seed = seed * 1664525u + 1013904223u;
    number = std::uint16_t(0x3c00 + (seed >> 20 & 0x3ff) + (seed >> 31 << 15));
  }
  return _mm512_load_si512(numbers);
}

}  // namespace

__attribute__((target("avx512bf16"))) std::int64_t avx512_bf16_products(std::int64_t rounds) {
  constexpr int kSums = 16;  // enough to hide how long one product takes
  constexpr int kProductsPerRound = 4 * 16 * 16;
  const auto left = (__m512bh)pairs_of(1), right = (__m512bh)pairs_of(2);
  __m512 sums[kSums];
#pragma GCC unroll 16
  for (int s = 0; s < kSums; ++s) sums[s] = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < rounds * (kProductsPerRound / kSums); ++i) {
#pragma GCC unroll 16
    for (int s = 0; s < kSums; ++s) {
      sums[s] = _mm512_dpbf16_ps(sums[s], left, right);
      asm volatile("" : "+v"(sums[s]));  // every product is made, and none becomes another's
    }
  }
  return rounds * kProductsPerRound * 32 * 2;
}

}  // namespace convoy
