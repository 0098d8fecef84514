// Gradients of weights: for each tap, in plane and out plane, the product over rows of the source
// (turned to [channel][row]) and of the target's gradient (row pairs interleaved), slab by slab.
// Layouts: product.h.
#include "kernels/amx/lanes.h"
#include "kernels/amx/product.h"
#include "kernels/amx/tiles.h"
#include "kernels/amx/weights_turner.h"

namespace convoy::amx {

namespace {

// Calls body(turned source row, turned gradient row) for all rows of the slab that row `ky` of the
// kernel joins.
template <typename Body>
CONVOY_INLINE void for_rows(const WeightProduct& p, const Slab& slab, const Cell& cell, int in,
                            int ky, const Bf16* ys, Body&& body) {
  for (int lot = 0; lot < slab.lots; ++lot) {
    for (int row = 0; row < slab.rows; ++row) {
      const int turned = (slab.first_row + row) * p.row_stride() + ky;
      if (!is_inside(p, turned)) continue;
      body(cell.turned_row(p, slab.group, in, lot, turned),
           ys + (std::size_t(lot) * p.slab_rows + row) * p.slab_steps * kBlock);
    }
  }
}

// One tap: four tiles of sums.
CONVOY_INLINE void multiply_tap(const WeightProduct& p, const Slab& slab, const Cell& cell, int in,
                                int tap, const Bf16* ys) {
  const int ky = tap / p.slide.kernel_width, kx = tap % p.slide.kernel_width;
  const std::size_t advance = std::size_t(p.step_advance()) * kBlock;
  for_rows(p, slab, cell, in, ky, ys, [&](const Bf16* a, const Bf16* b) {
    a += kx * kBlock;
    for (int step = 0; step < slab.steps; ++step, a += advance, b += kBlock) {
      load_tile<4, true>(a);
      load_tile<6, true>(b);
      load_tile<7, true>(b + 512);
      multiply_by_both<0, 4>();
      load_tile<5, true>(a + 512);
      multiply_by_both<2, 5>();
    }
  });
}

// Three neighbouring taps, 16 in channels, 16 out channels: three tiles of sums. As the windows
// move by one column, each source tile is loaded once and stays for three steps.
CONVOY_INLINE void multiply_three(const WeightProduct& p, const Slab& slab, const Cell& cell,
                                  int in, int ky, int half, const Bf16* ys) {
  for_rows(p, slab, cell, in, ky, ys, [&](const Bf16* a, const Bf16* b) {
    a += half * 512;
    load_tile<3, true>(a);
    load_tile<4, true>(a + kBlock);
    a += 2 * kBlock;
#define CONVOY_STEP(first, second, third) \
  load_tile<third, true>(a);              \
  load_tile<6, false>(b);                 \
  multiply_tiles<0, first, 6>();          \
  multiply_tiles<1, second, 6>();         \
  multiply_tiles<2, third, 6>();          \
  a += kBlock;                            \
  b += kBlock;
    int step = 0;
    for (; step + 2 < slab.steps; step += 3) {
      CONVOY_STEP(3, 4, 5)
      CONVOY_STEP(4, 5, 3)
      CONVOY_STEP(5, 3, 4)
    }
    if (step++ < slab.steps) {
      CONVOY_STEP(3, 4, 5)
    }
    if (step < slab.steps) {
      CONVOY_STEP(4, 5, 3)
    }
#undef CONVOY_STEP
  });
}

// The sums of three taps, `pitch` numbers apart.
CONVOY_INLINE void begin_three(float* c, std::size_t pitch, bool fresh) {
  begin_sums<0>(c, fresh);
  begin_sums<1>(c + pitch, fresh);
  begin_sums<2>(c + 2 * pitch, fresh);
}
CONVOY_INLINE void end_three(float* c, std::size_t pitch) {
  end_sums<0>(c);
  end_sums<1>(c + pitch);
  end_sums<2>(c + 2 * pitch);
}

// All taps of one pair of planes.
void multiply_pair(const WeightProduct& p, const Slab& slab, const Cell& cell, int in,
                   const Bf16* ys, float* sums, bool fresh) {
  const std::size_t pitch = std::size_t(p.shape.in_planes) * p.shape.out_planes * kBlock;
  if (!kLoadsCost || p.slide.kernel_width != 3 || p.step_advance() != 1) {
    for (int tap = 0; tap < p.shape.taps; ++tap) {
      begin_block(sums + tap * pitch, fresh);
      multiply_tap(p, slab, cell, in, tap, ys);
      end_block(sums + tap * pitch);
    }
    return;
  }
  for (int right = 0; right < 2; ++right) {
    for (int ky = 0; ky < p.slide.kernel_height; ++ky) {
      for (int half = 0; half < 2; ++half) {
        float* c = sums + 3 * ky * pitch + half * 512 + right * 16;
        begin_three(c, pitch, fresh);
        multiply_three(p, slab, cell, in, ky, half, ys + right * 512);
        end_three(c, pitch);
      }
    }
  }
}

void move_weights(const WeightGradient& g, std::size_t at, std::size_t count) {
  g.update->apply(g.stored + at, {g.sums + at, count});
}

// `whole`: null, or what is done with sums that are complete.
void multiply_cell(const WeightProduct& p, const Cell& cell, const Slab& slab, bool fresh,
                   const WeightGradient* whole) {
  for (int in = 0; in < cell.ins; ++in) {
    const std::size_t at =
        (std::size_t(cell.first_in + in) * p.shape.out_planes + cell.first_out) * kBlock;
    limit_rows(p.source.lanes_in(cell.first_in + in));
    for (int out = 0; out < cell.outs; ++out) {
      multiply_pair(p, slab, cell, in, cell.turned_targets(p, out), cell.sums + at + out * kBlock,
                    fresh);
    }
    if (!whole) continue;
    const std::size_t pitch = p.shape.size() / p.shape.taps;
    for (int tap = 0; tap < p.shape.taps; ++tap)
      move_weights(*whole, tap * pitch + at, std::size_t(cell.outs) * kBlock);
  }
}

void run_cell(const WeightProduct& p, const Cell& cell, const Bf16* source, const Bf16* target,
              const WeightGradient* whole) {
  Turner turner(p, cell, source, target);
  for (int number = cell.first_slab; number < cell.last_slab; ++number) {
    const bool first = number == cell.first_slab;
    const Slab slab = slab_at(p, number);
    turner.turn(slab, first || slab.first_row == 0);
    multiply_cell(p, cell, slab, first, number + 1 == cell.last_slab ? whole : nullptr);
  }
}

// The sums of part n > 0 are at more + (n - 1) * size.
void add_parts(const WeightProduct& p, const float* more, float* gradient, std::size_t first,
               std::size_t last) {
  const std::size_t size = p.shape.size();
  for (std::size_t v = first / 16; v < last / 16; ++v) {
    Floats sum = load_floats(gradient + v * 16);
    for (int n = 1; n < p.parts; ++n) sum = plus(sum, load_floats(more + (n - 1) * size + v * 16));
    store_floats(gradient + v * 16, sum);
  }
}

}  // namespace

void run_weight_product(const WeightProduct& p, const Bf16* source, const Bf16* target_gradient,
                        Bf16* turned, const WeightGradient& gradient) {
  const int cells = p.parts * p.in_parts * p.out_parts, slabs = p.slabs();
  auto* more = reinterpret_cast<float*>(turned + p.cell_size() * p.slots);
  run_team(p.slots, [&](int thread, int team) {
    configure_full_tiles();
    for (int at = thread; at < cells; at += team) {
      const int out = at % p.out_parts, in = at / p.out_parts % p.in_parts,
                part = at / p.out_parts / p.in_parts;
      Cell cell{.first_in = int(share(p.shape.in_planes, in, p.in_parts)),
                .ins = 0,
                .first_out = int(share(p.shape.out_planes, out, p.out_parts)),
                .outs = 0,
                .first_slab = int(share(slabs, part, p.parts)),
                .last_slab = int(share(slabs, part + 1, p.parts)),
                .xs = turned + p.cell_size() * thread,
                .ys = nullptr,
                .sums = part == 0 ? gradient.sums : more + (part - 1) * p.shape.size()};
      cell.ins = int(share(p.shape.in_planes, in + 1, p.in_parts)) - cell.first_in;
      cell.outs = int(share(p.shape.out_planes, out + 1, p.out_parts)) - cell.first_out;
      cell.ys = cell.xs + p.source_plane_size() * cell.ins;
      run_cell(p, cell, source, target_gradient,
               gradient.update && p.parts == 1 ? &gradient : nullptr);
    }
    release_tiles();
    if (p.parts == 1) return;
#pragma omp barrier
    const std::size_t blocks = p.shape.size() / kBlock,
                      first = share(blocks, thread, team) * kBlock,
                      last = share(blocks, thread + 1, team) * kBlock;
    add_parts(p, more, gradient.sums, first, last);
    if (gradient.update && first < last) move_weights(gradient, first, last - first);
  });
}

}  // namespace convoy::amx
