// Rows of 32 bf16 as two vectors of 16 floats, and what is done with rows everywhere. Only for
// kernels (*_amx.cc); everything is static and inlined, so that no copy of it can leak into other
// files.
#pragma once

#include "kernels/amx/layout.h"
#include "kernels/amx/vectors.h"
#include "kernels/parallel.h"

namespace convoy::amx {

struct Row {
  Floats low, high;  // channels 0 to 15 and 16 to 31
};

CONVOY_INLINE Row widen(Numbers v) { return {widen_low(v), widen_high(v)}; }
CONVOY_INLINE Row load_row(const Bf16* p) { return widen(load(p)); }
CONVOY_INLINE Row load_row(const float* p) { return {load_floats(p), load_floats(p + 16)}; }
CONVOY_INLINE Row load_row(std::uint32_t lanes, const float* p) {  // others are zero
  return {load_floats(lanes, p), load_floats(lanes >> 16, p + 16)};
}
CONVOY_INLINE void store_row(float* p, Row r) {
  store_floats(p, r.low);
  store_floats(p + 16, r.high);
}
CONVOY_INLINE void store_row(std::uint32_t lanes, float* p, Row r) {
  store_floats(lanes, p, r.low);
  store_floats(lanes >> 16, p + 16, r.high);
}
CONVOY_INLINE Numbers narrow(Row r) { return narrow(r.low, r.high); }
CONVOY_INLINE Row zero_row() { return {zero_floats(), zero_floats()}; }
CONVOY_INLINE Row same_row(float v) { return {same_floats(v), same_floats(v)}; }
CONVOY_INLINE Row operator+(Row a, Row b) { return {plus(a.low, b.low), plus(a.high, b.high)}; }
CONVOY_INLINE Row operator-(Row a, Row b) { return {minus(a.low, b.low), minus(a.high, b.high)}; }
CONVOY_INLINE Row operator*(Row a, Row b) { return {times(a.low, b.low), times(a.high, b.high)}; }
CONVOY_INLINE Row fused(Row a, Row b, Row c) {  // a * b + c
  return {fused(a.low, b.low, c.low), fused(a.high, b.high, c.high)};
}
CONVOY_INLINE Row largest(Row a, Row b) { return {largest(a.low, b.low), largest(a.high, b.high)}; }
CONVOY_INLINE Row keep(std::uint32_t lanes, Row r) {
  return {keep(lanes, r.low), keep(lanes >> 16, r.high)};
}
// The first `count` lanes, of 32 at most.
CONVOY_INLINE std::uint32_t first_lanes(int count) { return count >= 32 ? ~0u : (1u << count) - 1; }
// All lanes where bit `row` of `rows` is set, none elsewhere.
CONVOY_INLINE std::uint32_t lanes_if(std::uint32_t rows, int row) {
  return 0u - ((rows >> row) & 1u);
}
CONVOY_INLINE std::uint32_t positive(Numbers v) { return larger(v, zero_numbers()); }
CONVOY_INLINE std::uint32_t positive(Row r) { return positive(r.low) | positive(r.high) << 16; }

CONVOY_INLINE void store_wide(double* sums, Row r) {
  store_doubles(sums, r.low);
  store_doubles(sums + 16, r.high);
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
