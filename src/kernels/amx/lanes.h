// Rows of 32 bf16 as two vectors of 16 floats, and what is done with rows everywhere. Only for
// files that are built for AMX (*_amx.cc); everything is static and inlined, so that no copy of it
// can leak into other files.
#pragma once

// g++ 12 warns of its own intrinsics (bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "kernels/amx/layout.h"
#include "kernels/parallel.h"

namespace convoy::amx {

#define CONVOY_INLINE static inline __attribute__((always_inline))

struct Row {
  __m512 low, high;  // channels 0 to 15 and 16 to 31
};

CONVOY_INLINE __m512 widen(__m256i v) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}
CONVOY_INLINE Row widen(__m512i v) {
  return {widen(_mm512_castsi512_si256(v)), widen(_mm512_extracti64x4_epi64(v, 1))};
}
CONVOY_INLINE __m512i load(const Bf16* p) { return _mm512_load_si512(p); }
CONVOY_INLINE void store(Bf16* p, __m512i v) { _mm512_store_si512(p, v); }
CONVOY_INLINE Row load_row(const Bf16* p) { return widen(load(p)); }
CONVOY_INLINE Row load_row(const float* p) { return {_mm512_loadu_ps(p), _mm512_loadu_ps(p + 16)}; }
CONVOY_INLINE __m512i narrow(Row r) { return (__m512i)_mm512_cvtne2ps_pbh(r.high, r.low); }
CONVOY_INLINE Row zero_row() { return {_mm512_setzero_ps(), _mm512_setzero_ps()}; }
CONVOY_INLINE Row same_row(float v) { return {_mm512_set1_ps(v), _mm512_set1_ps(v)}; }
CONVOY_INLINE Row operator+(Row a, Row b) {
  return {_mm512_add_ps(a.low, b.low), _mm512_add_ps(a.high, b.high)};
}
CONVOY_INLINE Row operator*(Row a, Row b) {
  return {_mm512_mul_ps(a.low, b.low), _mm512_mul_ps(a.high, b.high)};
}
CONVOY_INLINE Row fused(Row a, Row b, Row c) {  // a * b + c
  return {_mm512_fmadd_ps(a.low, b.low, c.low), _mm512_fmadd_ps(a.high, b.high, c.high)};
}
CONVOY_INLINE Row largest(Row a, Row b) {
  return {_mm512_max_ps(a.low, b.low), _mm512_max_ps(a.high, b.high)};
}
CONVOY_INLINE Row keep(__mmask32 lanes, Row r) {
  return {_mm512_maskz_mov_ps(__mmask16(lanes), r.low),
          _mm512_maskz_mov_ps(__mmask16(lanes >> 16), r.high)};
}
// All lanes where bit `row` of `rows` is set, none elsewhere.
CONVOY_INLINE __mmask32 lanes_if(std::uint32_t rows, int row) { return 0u - ((rows >> row) & 1u); }
CONVOY_INLINE __mmask32 positive(__m512i v) {
  return _mm512_cmpgt_epi16_mask(v, _mm512_setzero_si512());
}
CONVOY_INLINE __mmask32 positive(Row r) {
  const __m512 zero = _mm512_setzero_ps();
  return __mmask32(_mm512_cmp_ps_mask(r.low, zero, _CMP_GT_OQ)) |
         __mmask32(_mm512_cmp_ps_mask(r.high, zero, _CMP_GT_OQ)) << 16;
}

CONVOY_INLINE void store_wide(double* sums, Row r) {
  _mm512_storeu_pd(sums, _mm512_cvtps_pd(_mm512_castps512_ps256(r.low)));
  _mm512_storeu_pd(sums + 8, _mm512_cvtps_pd(_mm512_extractf32x8_ps(r.low, 1)));
  _mm512_storeu_pd(sums + 16, _mm512_cvtps_pd(_mm512_castps512_ps256(r.high)));
  _mm512_storeu_pd(sums + 24, _mm512_cvtps_pd(_mm512_extractf32x8_ps(r.high, 1)));
}

// Runs body(thread, threads) on at most `slots` threads, which may meet at barriers.
template <typename Body>
static inline void run_team(int slots, Body&& body) {
  const int wanted = threads() < slots ? threads() : slots;
#pragma omp parallel num_threads(wanted)
  body(omp_get_thread_num(), omp_get_num_threads());
}
CONVOY_INLINE std::size_t share(std::size_t count, int thread, int team) {
  return count * thread / team;
}

// Cuts a value's planes into pieces and those among the threads: body(partial, lot, plane, first
// block, last block), where `partial` tells apart the pieces of all planes' equal lanes: less than
// Layout::partials().
template <typename Body>
static inline void for_pieces(const Layout& l, Body&& body) {
  const std::size_t pieces = l.pieces, total = std::size_t(l.lots) * l.planes * pieces;
  run_team(threads(), [&](int thread, int team) {
    for (std::size_t at = share(total, thread, team); at < share(total, thread + 1, team); ++at) {
      const int plane = int(at / pieces), piece = int(at % pieces), lot = plane / l.planes;
      body(lot * l.pieces + piece, lot, plane % l.planes, l.piece_begin(piece),
           l.piece_begin(piece + 1));
    }
  });
}
CONVOY_INLINE std::size_t block_at(const Layout& l, int lot, int plane, int block) {
  return ((std::size_t(lot) * l.planes + plane) * l.blocks + block) * kBlock;
}

}  // namespace convoy::amx
