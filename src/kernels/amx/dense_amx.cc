// Dense layers on few images, where each weight is used once: weights are narrowed and arranged on
// the way to the tiles instead of being packed first, so that they pass through memory once.
// Layouts: product.h; the target (forward) or the gradient (backward) is one block of rows.
#include "kernels/amx/lanes.h"
#include "kernels/amx/product.h"
#include "kernels/amx/tiles.h"
#include "kernels/amx/turn.h"

namespace convoy::amx {

namespace {

// A block of weights is a page of 4 KB, where the CPU stops fetching ahead of its own accord: asks
// for a later block line by line while this one is worked on.
CONVOY_INLINE void narrow_block(const float* from, const float* later, Bf16* to) {
  for (int r = 0; r < 32; ++r) {
    _mm_prefetch(reinterpret_cast<const char*>(later + r * kLanes), _MM_HINT_T1);
    _mm_prefetch(reinterpret_cast<const char*>(later + r * kLanes + 16), _MM_HINT_T1);
    store(to + r * kLanes, narrow(load_row(from + r * kLanes)));
  }
}
constexpr int kAhead = 4;  // blocks

// Rows 0 to 15 and 16 to 31 of a block times two tiles of weights. Small lots fill the first tile
// only.
CONVOY_INLINE void multiply(const Bf16* a, const Bf16* w, bool both) {
  load_tile<4, false>(a);
  load_tile<6, false>(w);
  load_tile<7, false>(w + 512);
  multiply_by_both<0, 4>();
  if (!both) return;
  load_tile<5, false>(a + 512);
  multiply_by_both<2, 5>();
}

void finish_target(const Layout& l, int plane, const float* sums, const Finish& f, Bf16* target) {
  const bool biased = f.kind == Finish::bias || f.kind == Finish::logits;
  const Row bias = biased ? load_row(f.bias_lanes + plane * kLanes) : zero_row();
  const Row floor = same_row(f.relu ? 0.0f : -__builtin_inff());
  const std::uint32_t rows = l.rows(0, 0);
  const int left = l.channels - plane * kLanes;
  const std::uint32_t lanes = first_lanes(left);
  for (int r = 0; r < 32; ++r) {
    const Row v = largest(load_row(sums + r * 32) + bias, floor);
    if (f.kind != Finish::logits) {
      store(target + block_at(l, 0, plane, 0) + r * kLanes, narrow(keep(lanes_if(rows, r), v)));
    } else if ((rows >> r) & 1) {
      float* to = f.logits_out + std::size_t(r) * l.channels + plane * kLanes;
      store_row(lanes, to, v);
    }
  }
}

constexpr std::size_t kPastCache = 8 << 20;  // bytes of gradients that nobody finds in a cache

// The gradients of a block of weights: 32 channels (turned, over images) times 32 outputs. Leaves
// tiles 0 to 3 alone.
CONVOY_INLINE void weight_block(const Bf16* channels, const Bf16* outputs, float* sums) {
  for (int half = 0; half < 2; ++half) {
    load_tile<4, false>(channels + half * 512);
    for (int part = 0; part < 2; ++part) {
      load_tile<5, false>(outputs + part * 512);
      float* there = sums + half * 512 + part * 16;
      begin_sums<6>(there, true);
      multiply_tiles<6, 4, 5>();
      end_sums<6>(there);
    }
  }
}

void store_source_gradient(const DenseBackward& d, const float* sums, std::size_t tap,
                           Bf16* plane) {
  const int lot = d.source.lot;
  Bf16* to = plane + tap * lot * kLanes;
  for (int r = 0; r < lot; ++r) store(to + r * kLanes, narrow(load_row(sums + r * 32)));
  if (tap + 1 < std::size_t(d.taps)) return;
  for (int r = d.taps * lot; r < d.source.blocks * 32; ++r)
    store(plane + std::size_t(r) * kLanes, zero_numbers());
}

// A row of weights: those of one plane of channels at one tap, to all outputs.
void dense_backward_row(const DenseBackward& d, const DenseGradients& g, std::size_t at,
                        const Interleave& interleave, bool past_cache) {
  alignas(64) static const Bf16 kZeros[8 * kLanes] = {};
  alignas(64) Bf16 channels[kBlock], block[kBlock], weights[kBlock];
  alignas(64) float sums[kBlock], moving[kBlock];
  const int out_planes = d.target.planes, lot = d.source.lot;
  const std::size_t tap = at / d.source.planes, in = at % d.source.planes;
  const Bf16* rows = g.source + in * d.source.plane_size() + tap * lot * kLanes;
  const Bf16* parts[4];
  for (int i = 0; i < 4; ++i) parts[i] = i * 8 < lot ? rows + i * 8 * kLanes : kZeros;
  turn_rows(interleave, parts, channels);
  begin_block(sums, true);
  for (int out = 0; out < out_planes; ++out) {
    const std::size_t offset = (at * out_planes + out) * kBlock;
    if (g.source_gradient) {
      const float* from = g.stored + offset;
      narrow_block(from, from + kAhead * kBlock, block);
      turn_pairs(block, weights);
      multiply(g.target_gradient + std::size_t(out) * d.target.plane_size(), weights, lot == 32);
    }
    float* to = g.weight_gradient + offset;
    const bool direct = !g.update && !past_cache;
    weight_block(channels, g.turned + std::size_t(out) * kBlock, direct ? to : moving);
    if (g.update) {
      g.update->apply(g.stored + offset, moving);
    } else if (past_cache) {
      for (int i = 0; i < kBlock; i += 16) stream_floats(to + i, load_floats(moving + i));
    }
  }
  if (!g.source_gradient) return;
  end_block(sums);
  store_source_gradient(d, sums, tap, g.source_gradient + in * d.source.plane_size());
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
      begin_block(sums, true);
      const float* from = stored + std::size_t(plane) * kBlock;
      for (std::size_t step = 0; step < steps; ++step, from += stride) {
        const std::size_t tap = step / in_planes, in = step % in_planes;
        const Bf16* a = source + in * p.source.plane_size() + tap * lot * kLanes;
        if (lot < 16) {  // a tile has 16 rows
          for (int r = 0; r < 16; ++r)
            store(rows + r * kLanes, r < lot ? load(a + r * kLanes) : zero_numbers());
          a = rows;
        }
        narrow_block(from, from + 2 * stride, block);
        interleave_rows(interleave, block, weights);
        multiply(a, weights, lot == 32);
      }
      end_block(sums);
      finish_target(p.target, plane, sums, f, target);
    }
    release_tiles();
  });
}

void run_dense_backward(const DenseBackward& d, const DenseGradients& g) {
  const std::size_t total = std::size_t(d.taps) * d.source.planes;
  const bool past_cache = total * d.target.planes * kBlock * sizeof(float) > kPastCache;
  parallel_for(d.target.planes, 8, [&](std::size_t first, std::size_t last) {
    const Interleave interleave;
    for (std::size_t plane = first; plane < last; ++plane) {
      interleave_rows(interleave, g.target_gradient + plane * d.target.plane_size(), d.target.lot,
                      g.turned + plane * kBlock);
    }
  });
  run_team(d.slots, [&](int thread, int team) {
    configure_full_tiles();
    const Interleave interleave;
    for (std::size_t at = share(total, thread, team); at < share(total, thread + 1, team); ++at) {
      dense_backward_row(d, g, at, interleave, past_cache);
    }
    release_tiles();
  });
}

}  // namespace convoy::amx
