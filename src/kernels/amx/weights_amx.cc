// Gradients of weights: for each tap, in plane and out plane, the product over rows of the source
// (turned to [channel][row]) and of the target's gradient (row pairs interleaved), slab by slab.
// Layouts: product.h.
#include "kernels/amx/lanes.h"
#include "kernels/amx/product.h"
#include "kernels/amx/turn.h"
#include "kernels/tiles.h"

namespace convoy::amx {

namespace {

alignas(64) const Bf16 kZeros[256] = {};

// The lots and target rows of one slab.
struct Slab {
  int first_lot, lots;
  int first_row, rows;
};

CONVOY_INLINE void start_sums(const float* c, bool fresh) {
  if (fresh) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, c, 128);
    _tile_loadd(1, c + 16, 128);
    _tile_loadd(2, c + 512, 128);
    _tile_loadd(3, c + 528, 128);
  }
}
CONVOY_INLINE void store_sums(float* c) {
  _tile_stored(0, c, 128);
  _tile_stored(1, c + 16, 128);
  _tile_stored(2, c + 512, 128);
  _tile_stored(3, c + 528, 128);
}

// One source row of one plane, block by block: lots of 32 give one block per column, smaller ones a
// copy of `steps` blocks for each column of the kernel.
void turn_source_row(const WeightProduct& p, const Interleave& interleave, const Bf16* plane, int y,
                     Bf16* to) {
  const Slide& s = p.slide;
  const int lot_bits = __builtin_ctz(unsigned(p.source.lot)), lot = p.source.lot;
  const int copies = p.source_blocks / p.kernel_advance;
  const bool inside = y >= 0 && y < s.height;
  const Bf16* line = plane + std::size_t(inside ? y : 0) * s.width * lot * kLanes;
  const int stride = lot == kLanes ? 1 : s.stride;
  for (int copy = 0; copy < copies; ++copy) {
    for (int step = 0; step < p.kernel_advance; ++step, to += kBlock) {
      const Bf16* from[4];
      for (int e = 0; e < 4; ++e) {
        const int row = step * kLanes + e * 8, x = (row >> lot_bits) * stride + copy - s.padding;
        const bool real = inside && x >= 0 && x < s.width;
        from[e] = real ? line + (std::size_t(x) * lot + (row & (lot - 1))) * kLanes : kZeros;
      }
      turn_rows(interleave, from, to);
    }
  }
}

// One target row of one plane: whole steps of 32 rows, filled up with zeros.
void turn_target_row(const WeightProduct& p, const Interleave& interleave, const Bf16* plane, int y,
                     Bf16* to) {
  const int rows = p.slide.out_width * p.target.lot;
  const Bf16* from = plane + std::size_t(y) * rows * kLanes;
  for (int step = 0; step < p.steps; ++step, to += kBlock, from += kBlock) {
    const int left = rows - step * kLanes;
    interleave_rows(interleave, from, left < kLanes ? left : kLanes, to);
  }
}

void turn_slab(const WeightProduct& p, const Slab& slab, const Bf16* source, const Bf16* target,
               Bf16* xs, Bf16* ys, int thread, int team) {
  const Interleave interleave;
  const Slide& s = p.slide;
  const int all_y = slab.first_row * s.stride - s.padding,
            before_y = all_y - s.stride + s.kernel_height;
  const int first_y = slab.first_row > 0 && before_y > all_y
                          ? before_y
                          : all_y;  // the slab before has turned the others
  const int source_rows = all_y + (slab.rows - 1) * s.stride + s.kernel_height - first_y;
  const std::size_t sources = std::size_t(p.shape.in_planes) * slab.lots * source_rows;
  for (std::size_t at = share(sources, thread, team); at < share(sources, thread + 1, team); ++at) {
    const std::size_t row = at % source_rows, lot = at / source_rows % slab.lots,
                      in = at / source_rows / slab.lots;
    const int y = first_y + int(row), slot = (y + s.padding) % p.source_rows();
    turn_source_row(
        p, interleave,
        source + ((slab.first_lot + lot) * p.shape.in_planes + in) * p.source.plane_size(), y,
        xs + in * p.source_plane_size() + (lot * p.source_rows() + slot) * p.source_row_size());
  }
  const std::size_t targets = std::size_t(p.shape.out_planes) * slab.lots * slab.rows;
  for (std::size_t at = share(targets, thread, team); at < share(targets, thread + 1, team); ++at) {
    const std::size_t row = at % slab.rows, lot = at / slab.rows % slab.lots,
                      out = at / slab.rows / slab.lots;
    turn_target_row(
        p, interleave,
        target + ((slab.first_lot + lot) * p.shape.out_planes + out) * p.target.plane_size(),
        slab.first_row + int(row),
        ys + out * p.target_plane_size() + (lot * p.slab_rows + row) * p.steps * kBlock);
  }
}

// Adds all products of one (in plane, out plane, tap) in this slab to the accumulator tiles.
CONVOY_INLINE void multiply_slab(const WeightProduct& p, const Slab& slab, int tap, const Bf16* xs,
                                 const Bf16* ys) {
  const Slide& s = p.slide;
  const int ky = tap / s.kernel_width, kx = tap % s.kernel_width;
  const std::size_t column = std::size_t(kx) * p.kernel_advance * kBlock,
                    advance = std::size_t(p.step_advance) * kBlock;
  for (int lot = 0; lot < slab.lots; ++lot) {
    for (int row = 0; row < slab.rows; ++row) {
      const int y = (slab.first_row + row) * s.stride + ky - s.padding;
      if (y < 0 || y >= s.height) continue;
      const int slot = (y + s.padding) % p.source_rows();
      const Bf16* a =
          xs + (std::size_t(lot) * p.source_rows() + slot) * p.source_row_size() + column;
      const Bf16* b = ys + (std::size_t(lot) * p.slab_rows + row) * p.steps * kBlock;
      for (int step = 0; step < p.steps; ++step, a += advance, b += kBlock) {
        _tile_stream_loadd(4, a, 64);
        _tile_stream_loadd(6, b, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_stream_loadd(7, b + 512, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_stream_loadd(5, a + 512, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
  }
}

void multiply_share(const WeightProduct& p, const Slab& slab, const Bf16* xs, const Bf16* ys,
                    bool fresh, bool only, float* gradient, int thread, int team) {
  const WeightShape& w = p.shape;
  const std::size_t total = std::size_t(w.in_planes) * w.out_planes * w.taps;
  // Sums of a large dense layer, written once and too many for any cache, go straight to memory.
  const bool past_cache = fresh && only && w.size() * sizeof(float) > std::size_t(32) << 20;
  for (std::size_t at = share(total, thread, team); at < share(total, thread + 1, team); ++at) {
    const std::size_t tap = at % w.taps, out = at / w.taps % w.out_planes,
                      in = at / w.taps / w.out_planes;
    float* sums = gradient + ((tap * w.in_planes + in) * w.out_planes + out) * kBlock;
    start_sums(sums, fresh);
    multiply_slab(p, slab, int(tap), xs + in * p.source_plane_size(),
                  ys + out * p.target_plane_size());
    if (past_cache) {
      alignas(64) float block[kBlock];
      store_sums(block);
      for (int i = 0; i < kBlock; i += 16) _mm512_stream_ps(sums + i, _mm512_load_ps(block + i));
    } else {
      store_sums(sums);
    }
  }
}

}  // namespace

void run_weight_product(const WeightProduct& p, const Bf16* source, const Bf16* target_gradient,
                        Bf16* turned, float* gradient) {
  Bf16* xs = turned;
  Bf16* ys = turned + p.source_plane_size() * p.shape.in_planes;
  const int row_slabs = (p.slide.out_height + p.slab_rows - 1) / p.slab_rows;
  const int lot_slabs = (p.target.lots + p.slab_lots - 1) / p.slab_lots;
  run_team(p.slots, [&](int thread, int team) {
    configure_full_tiles();
    for (int i = 0; i < row_slabs * lot_slabs; ++i) {
      const int lot = i / row_slabs * p.slab_lots, row = i % row_slabs * p.slab_rows;
      const int lots_left = p.target.lots - lot, rows_left = p.slide.out_height - row;
      const Slab slab{.first_lot = lot,
                      .lots = lots_left < p.slab_lots ? lots_left : p.slab_lots,
                      .first_row = row,
                      .rows = rows_left < p.slab_rows ? rows_left : p.slab_rows};
      turn_slab(p, slab, source, target_gradient, xs, ys, thread, team);
#pragma omp barrier
      multiply_share(p, slab, xs, ys, i == 0, row_slabs * lot_slabs == 1, gradient, thread, team);
#pragma omp barrier
    }
    _tile_release();
  });
}

}  // namespace convoy::amx
