// Dense layers on few images, where each weight is used once: weights are narrowed and arranged on
// the way to the tiles instead of being packed first, so that they pass through memory once.
// Layouts: product.h; the target (forward) or the gradient (backward) is one block of rows.
#include "kernels/amx/lanes.h"
#include "kernels/amx/product.h"
#include "kernels/amx/turn.h"
#include "kernels/tiles.h"

namespace convoy::amx {

namespace {

CONVOY_INLINE void narrow_block(const float* from, Bf16* to) {
  for (int r = 0; r < 32; ++r) store(to + r * kLanes, narrow(load_row(from + r * kLanes)));
}

// A block of weights is a page of 4 KB, and the next one may be far away: ask for it early.
CONVOY_INLINE void prefetch_block(const float* block) {
  for (int line = 0; line < 64; ++line)
    _mm_prefetch(reinterpret_cast<const char*>(block + line * 16), _MM_HINT_T0);
}

CONVOY_INLINE void zero_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// Rows 0 to 15 and 16 to 31 of a block times two tiles of weights. Small lots fill the first tile
// only.
CONVOY_INLINE void multiply(const Bf16* a, const Bf16* w, bool both) {
  _tile_loadd(4, a, 64);
  _tile_loadd(6, w, 64);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(7, w + 512, 64);
  _tile_dpbf16ps(1, 4, 7);
  if (!both) return;
  _tile_loadd(5, a + 512, 64);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

CONVOY_INLINE void store_sums(float* c) {
  _tile_stored(0, c, 128);
  _tile_stored(1, c + 16, 128);
  _tile_stored(2, c + 512, 128);
  _tile_stored(3, c + 528, 128);
}

void finish_target(const Layout& l, int plane, const float* sums, const Finish& f, Bf16* target) {
  const bool biased = f.kind == Finish::bias || f.kind == Finish::logits;
  const Row bias = biased ? load_row(f.bias_lanes + plane * kLanes) : zero_row();
  const Row floor = same_row(f.relu ? 0.0f : -__builtin_inff());
  const std::uint32_t rows = l.rows(0, 0);
  const int left = l.channels - plane * kLanes;
  const __mmask32 lanes = left >= 32 ? ~0u : (1u << left) - 1;
  for (int r = 0; r < 32; ++r) {
    const Row v = largest(load_row(sums + r * 32) + bias, floor);
    if (f.kind != Finish::logits) {
      store(target + block_at(l, 0, plane, 0) + r * kLanes, narrow(keep(lanes_if(rows, r), v)));
    } else if ((rows >> r) & 1) {
      float* to = f.logits_out + std::size_t(r) * l.channels + plane * kLanes;
      _mm512_mask_storeu_ps(to, __mmask16(lanes), v.low);
      _mm512_mask_storeu_ps(to + 16, __mmask16(lanes >> 16), v.high);
    }
  }
}

}  // namespace

void run_dense_forward(const TileProduct& p, const Bf16* source, const float* stored, Bf16* target,
                       const Finish& f) {
  const int in_planes = p.source.planes, out_planes = p.target.planes, lot = p.source.lot;
  const std::size_t steps = std::size_t(p.taps) * in_planes,
                    stride = std::size_t(out_planes) * kBlock;
  run_team(p.slots, [&](int thread, int team) {
    configure_full_tiles();
    const Interleave interleave;
    alignas(64) Bf16 block[kBlock], weights[kBlock], rows[kBlock];
    alignas(64) float sums[kBlock];
    for (int plane = int(share(out_planes, thread, team));
         plane < int(share(out_planes, thread + 1, team)); ++plane) {
      zero_sums();
      const float* from = stored + std::size_t(plane) * kBlock;
      for (std::size_t step = 0; step < steps; ++step, from += stride) {
        if (step + 1 < steps) prefetch_block(from + stride);
        const std::size_t tap = step / in_planes, in = step % in_planes;
        const Bf16* a = source + in * p.source.plane_size() + tap * lot * kLanes;
        if (lot < 16) {  // a tile has 16 rows
          for (int r = 0; r < 16; ++r)
            store(rows + r * kLanes, r < lot ? load(a + r * kLanes) : _mm512_setzero_si512());
          a = rows;
        }
        narrow_block(from, block);
        interleave_rows(interleave, block, weights);
        multiply(a, weights, lot == 32);
      }
      store_sums(sums);
      finish_target(p.target, plane, sums, f, target);
    }
    _tile_release();
  });
}

void run_dense_backward(const TileProduct& p, const Bf16* gradient, const float* stored,
                        Bf16* target) {
  const int in_planes = p.target.planes, out_planes = p.source.planes, lot = p.source.lot;
  const std::size_t total = std::size_t(p.taps) * in_planes;
  run_team(p.slots, [&](int thread, int team) {
    configure_full_tiles();
    alignas(64) Bf16 block[kBlock], weights[kBlock];
    alignas(64) float sums[kBlock];
    for (std::size_t at = share(total, thread, team); at < share(total, thread + 1, team); ++at) {
      const std::size_t tap = at / in_planes, in = at % in_planes;
      zero_sums();
      for (int out = 0; out < out_planes; ++out) {
        const float* from = stored + (at * out_planes + out) * kBlock;
        if (at + 1 < total || out + 1 < out_planes) prefetch_block(from + kBlock);
        narrow_block(from, block);
        turn_pairs(block, weights);
        multiply(gradient + std::size_t(out) * p.source.plane_size(), weights, lot == 32);
      }
      store_sums(sums);
      Bf16* to = target + in * p.target.plane_size() + tap * lot * kLanes;
      for (int r = 0; r < lot; ++r) store(to + r * kLanes, narrow(load_row(sums + r * 32)));
      if (tap + 1 < std::size_t(p.taps)) continue;
      for (int r = p.taps * lot; r < p.target.blocks * 32; ++r) {
        store(target + in * p.target.plane_size() + std::size_t(r) * kLanes,
              _mm512_setzero_si512());
      }
    }
    _tile_release();
  });
}

}  // namespace convoy::amx
