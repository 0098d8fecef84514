// B = 16: a plane's position is one register.
#include <immintrin.h>

#include "kernels/onednn/pool_planes.h"
#include "kernels/onednn/pool_planes_loops.h"

namespace convoy::onednn {
namespace {

struct Sixteen {
  using Floats = __m512;
  using Words = __m512i;
  static constexpr int kLanes = 16;

  static Floats same(float v) { return _mm512_set1_ps(v); }
  static Words same(int v) { return _mm512_set1_epi32(v); }
  static Floats load(const float* p) { return _mm512_loadu_ps(p); }
  static Floats load(const float* p, int lanes) {  // others are zero
    return _mm512_maskz_loadu_ps(first(lanes), p);
  }
  static void store(float* p, Floats v, int lanes) { _mm512_mask_storeu_ps(p, first(lanes), v); }
  static void keep_larger(Floats value, int tap, Floats& best, Words& winner) {
    const __mmask16 wins = _mm512_cmp_ps_mask(value, best, _CMP_GT_OQ);
    best = _mm512_mask_mov_ps(best, wins, value);
    winner = _mm512_mask_set1_epi32(winner, wins, tap);
  }
  static Floats where_equal(Words winner, int tap, Floats value) {
    return _mm512_maskz_mov_ps(_mm512_cmpeq_epi32_mask(winner, same(tap)), value);
  }
  static Words load_bytes(const std::uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static void store_bytes(std::uint8_t* p, Words v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(v));
  }

 private:
  static __mmask16 first(int lanes) { return __mmask16((1u << lanes) - 1); }
};

}  // namespace

template <>
void max_pool_forward<16>(const PoolPlane& p, const float* in, float* out, std::uint8_t* where,
                          int lanes) {
  forward_plane<Sixteen>(p, in, out, where, lanes);
}

template <>
void max_pool_backward<16>(const PoolPlane& p, float* in_gradient, const float* gradient,
                           const std::uint8_t* where, int lanes) {
  backward_plane<Sixteen>(p, in_gradient, gradient, where, lanes);
}

}  // namespace convoy::onednn
