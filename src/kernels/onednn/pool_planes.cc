// B = 8, for any CPU with AVX2.
#include "kernels/onednn/pool_planes.h"

#include <immintrin.h>

#include "kernels/onednn/pool_planes_loops.h"

namespace convoy::onednn {
namespace {

struct Eight {
  using Floats = __m256;
  using Words = __m256i;
  static constexpr int kLanes = 8;

  static Floats same(float v) { return _mm256_set1_ps(v); }
  static Words same(int v) { return _mm256_set1_epi32(v); }
  static Floats load(const float* p) { return _mm256_loadu_ps(p); }
  static Floats load(const float* p, int lanes) {  // others are zero
    return lanes == kLanes ? load(p) : _mm256_maskload_ps(p, first(lanes));
  }
  static void store(float* p, Floats v, int lanes) {
    if (lanes == kLanes)
      _mm256_storeu_ps(p, v);
    else
      _mm256_maskstore_ps(p, first(lanes), v);
  }
  static void keep_larger(Floats value, int tap, Floats& best, Words& winner) {
    const Floats wins = _mm256_cmp_ps(value, best, _CMP_GT_OQ);
    best = _mm256_blendv_ps(best, value, wins);
    winner = _mm256_blendv_epi8(winner, same(tap), _mm256_castps_si256(wins));
  }
  static Floats where_equal(Words winner, int tap, Floats value) {
    return _mm256_and_ps(value, _mm256_castsi256_ps(_mm256_cmpeq_epi32(winner, same(tap))));
  }
  static Words load_bytes(const std::uint8_t* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static void store_bytes(std::uint8_t* p, Words v) {
    const __m128i words =
        _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(words, words));
  }

 private:
  static Words first(int lanes) {
    return _mm256_cmpgt_epi32(same(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

}  // namespace

template <>
void max_pool_forward<8>(const PoolPlane& p, const float* in, float* out, std::uint8_t* where,
                         int lanes) {
  forward_plane<Eight>(p, in, out, where, lanes);
}

template <>
void max_pool_backward<8>(const PoolPlane& p, float* in_gradient, const float* gradient,
                          const std::uint8_t* where, int lanes) {
  backward_plane<Eight>(p, in_gradient, gradient, where, lanes);
}

}  // namespace convoy::onednn
