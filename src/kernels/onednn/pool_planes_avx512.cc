// B = 16: a plane's position is one register.
#include <immintrin.h>

#include "kernels/onednn/pool_planes.h"

namespace convoy::onednn {
namespace {

int larger(int a, int b) { return a > b ? a : b; }
int smaller(int a, int b) { return a < b ? a : b; }

__mmask16 mask_of(int lanes) { return __mmask16((1u << lanes) - 1); }

}  // namespace

template <>
void max_pool_forward<16>(const PoolPlane& p, const float* in, float* out, std::uint8_t* where,
                          int lanes) {
  const __m512 floor = _mm512_set1_ps(p.relu ? 0.0f : -__builtin_inff());
  for (int y = 0; y < p.out_height; ++y)
    for (int x = 0; x < p.out_width; ++x) {
      const int top = y * p.stride - p.padding, left = x * p.stride - p.padding;
      const int bottom = smaller(top + p.kernel, p.in_height),
                right = smaller(left + p.kernel, p.in_width);
      __m512 best = floor;
      __m512i winner = _mm512_set1_epi32(kCut);
      for (int r = larger(top, 0); r < bottom; ++r)
        for (int c = larger(left, 0); c < right; ++c) {
          const __m512 value = _mm512_loadu_ps(in + (long(r) * p.in_width + c) * 16);
          const __mmask16 wins = _mm512_cmp_ps_mask(value, best, _CMP_GT_OQ);
          winner = _mm512_mask_set1_epi32(winner, wins, (r - top) * p.kernel + (c - left));
          best = _mm512_mask_mov_ps(best, wins, value);
        }
      const long at = long(y) * p.out_width + x;
      _mm512_mask_storeu_ps(out + at * 16, mask_of(lanes), best);
      if (where)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(where + at * 16), _mm512_cvtepi32_epi8(winner));
    }
}

template <>
void max_pool_backward<16>(const PoolPlane& p, float* in_gradient, const float* gradient,
                           const std::uint8_t* where, int lanes) {
  if (!p.tiles)
    for (long i = 0; i < long(p.in_height) * p.in_width; ++i)
      _mm512_storeu_ps(in_gradient + i * 16, _mm512_setzero_ps());
  for (int y = 0; y < p.out_height; ++y)
    for (int x = 0; x < p.out_width; ++x) {
      const int top = y * p.stride - p.padding, left = x * p.stride - p.padding;
      const int bottom = smaller(top + p.kernel, p.in_height),
                right = smaller(left + p.kernel, p.in_width);
      const long at = long(y) * p.out_width + x;
      const __m512 given = _mm512_maskz_loadu_ps(mask_of(lanes), gradient + at * 16);
      const __m512i winner =
          _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(where + at * 16)));
      for (int r = larger(top, 0); r < bottom; ++r)
        for (int c = larger(left, 0); c < right; ++c) {
          float* target = in_gradient + (long(r) * p.in_width + c) * 16;
          const __mmask16 won =
              _mm512_cmpeq_epi32_mask(winner, _mm512_set1_epi32((r - top) * p.kernel + (c - left)));
          const __m512 share = _mm512_maskz_mov_ps(won, given);
          _mm512_storeu_ps(target, p.tiles ? share : _mm512_add_ps(_mm512_loadu_ps(target), share));
        }
    }
}

}  // namespace convoy::onednn
