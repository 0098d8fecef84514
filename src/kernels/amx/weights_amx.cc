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

// The lots, target rows and steps of one slab.
struct Slab {
  int first_lot, lots;
  int first_row, rows;
  int first_step, steps;
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

// Blocks [first, last) of one source row of one plane: lots of 32 give one block per column,
// smaller ones a copy of the slab's steps for each column of the kernel.
void turn_source_blocks(const WeightProduct& p, const Slab& slab, const Interleave& interleave,
                        const Bf16* plane, int y, int first, int last, Bf16* to) {
  const Slide& s = p.slide;
  const int lot = p.source.lot, lot_bits = __builtin_ctz(unsigned(lot));
  const bool inside = y >= 0 && y < s.height, whole = lot == kLanes;
  const Bf16* line = plane + std::size_t(inside ? y : 0) * s.width * lot * kLanes;
  int copy = first / p.kernel_advance, step = first % p.kernel_advance;
  for (int block = first; block < last; ++block) {
    const Bf16* from[4];
    for (int e = 0; e < 4; ++e) {
      const int row = (whole ? 0 : slab.first_step + step) * kLanes + e * 8;
      const int x = (whole ? slab.first_step : row >> lot_bits) * s.stride + copy - s.padding;
      const bool real = inside && x >= 0 && x < s.width;
      from[e] = real ? line + (std::size_t(x) * lot + (row & (lot - 1))) * kLanes : kZeros;
    }
    turn_rows(interleave, from, to + block * kBlock);
    if (++step < p.kernel_advance) continue;
    step = 0;
    ++copy;
  }
}

// Blocks [first, last) of one target row of one plane: whole steps of 32 rows, filled up with
// zeros.
void turn_target_blocks(const WeightProduct& p, const Slab& slab, const Interleave& interleave,
                        const Bf16* plane, int y, int first, int last, Bf16* to) {
  const int rows = p.slide.out_width * p.target.lot;
  const Bf16* line = plane + std::size_t(y) * rows * kLanes;
  for (int block = first; block < last; ++block) {
    const int row = (slab.first_step + block) * kLanes, left = rows - row;
    interleave_rows(interleave, line + std::size_t(row) * kLanes, left < kLanes ? left : kLanes,
                    to + block * kBlock);
  }
}

// Cuts `lines` lines of `blocks` blocks among the threads: body(line, first block, last block).
template <typename Body>
CONVOY_INLINE void share_blocks(std::size_t lines, int blocks, int thread, int team, Body&& body) {
  std::size_t at = share(lines * blocks, thread, team);
  const std::size_t end = share(lines * blocks, thread + 1, team);
  while (at < end) {
    const int first = int(at % blocks);
    const std::size_t count =
        end - at < std::size_t(blocks - first) ? end - at : std::size_t(blocks - first);
    body(at / blocks, first, first + int(count));
    at += count;
  }
}

// The source rows of a slab, made of columns. Windows are of one position here, so that a plane is
// one row.
void turn_columns(const WeightProduct& p, const Slab& slab, Bf16* xs, int thread, int team) {
  const Interleave interleave;
  alignas(64) Bf16 blocks[kLongestColumn * kLanes];
  share_blocks(slab.lots, slab.steps, thread, team, [&](std::size_t lot, int first, int last) {
    for (int step = first; step < last; ++step) {
      fill_columns(*p.columns, p.source, slab.first_lot + int(lot),
                   (slab.first_step + step) * kLanes, blocks, kBlock);
      for (int in = 0; in < p.shape.in_planes; ++in) {
        const Bf16* block = blocks + in * kBlock;
        const Bf16* const from[4] = {block, block + 256, block + 512, block + 768};
        turn_rows(interleave, from,
                  xs + in * p.source_plane_size() + lot * p.source_row_size() + step * kBlock);
      }
    }
  });
}

void turn_sources(const WeightProduct& p, const Slab& slab, const Bf16* source, Bf16* xs,
                  int thread, int team) {
  const Interleave interleave;
  const Slide& s = p.slide;
  const int all_y = slab.first_row * s.stride - s.padding,
            before_y = all_y - s.stride + s.kernel_height;
  // The slab before has turned the rows above before_y.
  const int first_y = slab.first_row > 0 && before_y > all_y ? before_y : all_y;
  const std::size_t rows = all_y + (slab.rows - 1) * s.stride + s.kernel_height - first_y;
  share_blocks(
      p.shape.in_planes * slab.lots * rows, p.source_blocks, thread, team,
      [&](std::size_t line, int first, int last) {
        const std::size_t row = line % rows, lot = line / rows % slab.lots,
                          in = line / rows / slab.lots;
        const int y = first_y + int(row), slot = (y + s.padding) % p.source_rows();
        turn_source_blocks(
            p, slab, interleave,
            source + ((slab.first_lot + lot) * p.shape.in_planes + in) * p.source.plane_size(), y,
            first, last,
            xs + in * p.source_plane_size() + (lot * p.source_rows() + slot) * p.source_row_size());
      });
}

void turn_targets(const WeightProduct& p, const Slab& slab, const Bf16* target, Bf16* ys,
                  int thread, int team) {
  const Interleave interleave;
  const std::size_t rows = slab.rows;
  share_blocks(
      p.shape.out_planes * slab.lots * rows, slab.steps, thread, team,
      [&](std::size_t line, int first, int last) {
        const std::size_t row = line % rows, lot = line / rows % slab.lots,
                          out = line / rows / slab.lots;
        turn_target_blocks(
            p, slab, interleave,
            target + ((slab.first_lot + lot) * p.shape.out_planes + out) * p.target.plane_size(),
            slab.first_row + int(row), first, last,
            ys + out * p.target_plane_size() + (lot * p.slab_rows + row) * p.slab_steps * kBlock);
      });
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
      const Bf16* b = ys + (std::size_t(lot) * p.slab_rows + row) * p.slab_steps * kBlock;
      for (int step = 0; step < slab.steps; ++step, a += advance, b += kBlock) {
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

struct SumsAre {
  bool fresh;  // nothing has been added to them yet
  bool only;   // no other slab follows
};

void multiply_share(const WeightProduct& p, const Slab& slab, const Bf16* xs, const Bf16* ys,
                    SumsAre sums_are, float* gradient, int thread, int team) {
  const WeightShape& w = p.shape;
  const std::size_t total = std::size_t(w.in_planes) * w.out_planes * w.taps;
  // Sums of a large dense layer, written once and too many for any cache, go straight to memory.
  const bool past_cache =
      sums_are.fresh && sums_are.only && w.size() * sizeof(float) > std::size_t(32) << 20;
  for (std::size_t at = share(total, thread, team); at < share(total, thread + 1, team); ++at) {
    const std::size_t tap = at % w.taps, out = at / w.taps % w.out_planes,
                      in = at / w.taps / w.out_planes;
    float* sums = gradient + ((tap * w.in_planes + in) * w.out_planes + out) * kBlock;
    start_sums(sums, sums_are.fresh);
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
  const auto parts = [](int whole, int part) { return (whole + part - 1) / part; };
  const int row_slabs = parts(p.slide.out_height, p.slab_rows),
            step_slabs = parts(p.steps, p.slab_steps);
  const int slabs = parts(p.target.lots, p.slab_lots) * step_slabs * row_slabs;
  const auto at_most = [](int left, int most) { return left < most ? left : most; };
  run_team(p.slots, [&](int thread, int team) {
    configure_full_tiles();
    for (int i = 0; i < slabs;
         ++i) {  // rows run fastest, so that a slab finds turned rows of the one before
      const int row = i % row_slabs * p.slab_rows, step = i / row_slabs % step_slabs * p.slab_steps;
      const int lot = i / row_slabs / step_slabs * p.slab_lots;
      const Slab slab{.first_lot = lot,
                      .lots = at_most(p.target.lots - lot, p.slab_lots),
                      .first_row = row,
                      .rows = at_most(p.slide.out_height - row, p.slab_rows),
                      .first_step = step,
                      .steps = at_most(p.steps - step, p.slab_steps)};
      p.columns ? turn_columns(p, slab, xs, thread, team)
                : turn_sources(p, slab, source, xs, thread, team);
      turn_targets(p, slab, target_gradient, ys, thread, team);
#pragma omp barrier
      multiply_share(p, slab, xs, ys, {.fresh = i == 0, .only = slabs == 1}, gradient, thread,
                     team);
#pragma omp barrier
    }
    _tile_release();
  });
}

}  // namespace convoy::amx
