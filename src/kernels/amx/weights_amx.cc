// Gradients of weights: for each tap, in plane and out plane, the product over rows of the source
// (turned to [32 channels][32 rows]) and of the target's gradient (row pairs interleaved). Blocks
// are turned once per chunk that fits the second-level cache. Small maps are one chunk, all turned
// first, and threads share the weight blocks; of large maps each thread takes whole chunks and adds
// to sums of its own, which are then added up. Layouts: product.h.
#include "kernels/amx/lanes.h"
#include "kernels/amx/product.h"
#include "kernels/amx/turn.h"
#include "kernels/tiles.h"

namespace convoy::amx {

namespace {

alignas(64) const Bf16 kZeroRowsOf8[256] = {};

CONVOY_INLINE void load_sums(const float* c) {
  _tile_loadd(0, c, 128);
  _tile_loadd(1, c + 16, 128);
  _tile_loadd(2, c + 512, 128);
  _tile_loadd(3, c + 528, 128);
}
CONVOY_INLINE void zero_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}
CONVOY_INLINE void store_sums(float* c) {
  _tile_stored(0, c, 128);
  _tile_stored(1, c + 16, 128);
  _tile_stored(2, c + 512, 128);
  _tile_stored(3, c + 528, 128);
}
CONVOY_INLINE void multiply_pairs(const GatherPair* pair, const GatherPair* end, const Bf16* x,
                                  const Bf16* y) {
  for (; pair != end; ++pair) {
    const Bf16* a = x + std::size_t(pair->gather) * kBlock;
    const Bf16* b = y + std::size_t(pair->block) * kBlock;
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

CONVOY_INLINE void turn_gather(const Interleave& x, const Gather32& gather, const Bf16* plane,
                               Bf16* to) {
  const Bf16* from[4];
  for (int e = 0; e < 4; ++e) {
    from[e] = gather.row[e] < 0 ? kZeroRowsOf8 : plane + std::size_t(gather.row[e]) * kLanes;
  }
  turn_rows(x, from, to);
}

// One chunk: turned source is [in plane][lot][gather], turned gradient [out plane][lot][block].
void share_weight_blocks(const WeightProduct& p, const Bf16* source, const Bf16* target,
                         Bf16* turned, float* gradient) {
  const GatherView& c = p.chunks[0];
  const int lots = p.source.lots, in_planes = p.shape.in_planes, out_planes = p.shape.out_planes;
  const std::size_t blocks = c.last - c.first;
  Bf16* xs = turned;
  Bf16* ys = turned + std::size_t(lots) * in_planes * c.gather_count * kBlock;
  run_team(p.slots, [&](int thread, int team) {
    const Interleave interleave;
    const std::size_t sources = std::size_t(lots) * in_planes * c.gather_count;
    for (std::size_t at = share(sources, thread, team); at < share(sources, thread + 1, team);
         ++at) {
      const std::size_t g = at % c.gather_count, lot = at / c.gather_count % lots,
                        in = at / c.gather_count / lots;
      turn_gather(interleave, c.gathers[g], source + (lot * in_planes + in) * p.source.plane_size(),
                  xs + at * kBlock);
    }
    const std::size_t targets = std::size_t(lots) * out_planes * blocks;
    for (std::size_t at = share(targets, thread, team); at < share(targets, thread + 1, team);
         ++at) {
      const std::size_t b = at % blocks, lot = at / blocks % lots, out = at / blocks / lots;
      interleave_rows(interleave, target + block_at(p.target, int(lot), int(out), int(b)),
                      ys + at * kBlock);
    }
  });
  run_team(p.slots, [&](int thread, int team) {
    configure_full_tiles();
    const std::size_t total = std::size_t(in_planes) * out_planes;
    for (std::size_t at = share(total, thread, team); at < share(total, thread + 1, team); ++at) {
      const std::size_t in = at % in_planes, out = at / in_planes;
      for (int tap = 0; tap < p.shape.taps; ++tap) {
        zero_sums();
        for (int lot = 0; lot < lots; ++lot) {
          multiply_pairs(c.pairs + c.begin[tap], c.pairs + c.begin[tap + 1],
                         xs + (in * lots + lot) * c.gather_count * kBlock,
                         ys + (out * lots + lot) * blocks * kBlock);
        }
        store_sums(gradient + ((std::size_t(tap) * in_planes + in) * out_planes + out) * kBlock);
      }
    }
    _tile_release();
  });
}

// Turned blocks of one chunk: source [in plane][gather], gradient [out plane][block].
void turn_chunk(const WeightProduct& p, const GatherView& c, int lot, const Bf16* source,
                const Bf16* target, Bf16* xs, Bf16* ys) {
  const Interleave interleave;
  const int blocks = c.last - c.first;
  for (int in = 0; in < p.shape.in_planes; ++in) {
    const Bf16* plane =
        source + (std::size_t(lot) * p.shape.in_planes + in) * p.source.plane_size();
    for (int g = 0; g < c.gather_count; ++g) {
      turn_gather(interleave, c.gathers[g], plane,
                  xs + (std::size_t(in) * c.gather_count + g) * kBlock);
    }
  }
  for (int out = 0; out < p.shape.out_planes; ++out) {
    for (int b = 0; b < blocks; ++b) {
      interleave_rows(interleave, target + block_at(p.target, lot, out, c.first + b),
                      ys + (std::size_t(out) * blocks + b) * kBlock);
    }
  }
}

void add_chunk(const WeightProduct& p, const GatherView& c, const Bf16* xs, const Bf16* ys,
               bool fresh, float* sums) {
  const std::size_t blocks = c.last - c.first;
  for (int tap = 0; tap < p.shape.taps; ++tap) {
    for (int in = 0; in < p.shape.in_planes; ++in) {
      for (int out = 0; out < p.shape.out_planes; ++out, sums += kBlock) {
        if (fresh) {
          zero_sums();
        } else {
          load_sums(sums);
        }
        multiply_pairs(c.pairs + c.begin[tap], c.pairs + c.begin[tap + 1],
                       xs + std::size_t(in) * c.gather_count * kBlock, ys + out * blocks * kBlock);
        store_sums(sums);
      }
    }
  }
}

std::size_t chunk_size(
    const WeightProduct& p) {  // numbers for the turned blocks of the largest chunk
  std::size_t most = 0;
  for (int i = 0; i < p.chunk_count; ++i) {
    const GatherView& c = p.chunks[i];
    const std::size_t size = std::size_t(c.gather_count) * p.shape.in_planes +
                             std::size_t(c.last - c.first) * p.shape.out_planes;
    if (size > most) most = size;
  }
  return most * kBlock;
}

void share_chunks(const WeightProduct& p, const Bf16* source, const Bf16* target, Bf16* turned,
                  float* own_sums, float* gradient) {
  const std::size_t units = std::size_t(p.source.lots) * p.chunk_count, per_thread = chunk_size(p),
                    size = p.shape.size();
  int used = 1;
  run_team(p.slots, [&](int thread, int team) {
    configure_full_tiles();
    if (thread == 0) used = team;
    float* sums = thread == 0 ? gradient : own_sums + std::size_t(thread - 1) * size;
    Bf16* xs = turned + thread * per_thread;
    const std::size_t first = share(units, thread, team), last = share(units, thread + 1, team);
    if (first == last) __builtin_memset(sums, 0, size * sizeof(float));
    for (std::size_t unit = first; unit < last; ++unit) {
      const GatherView& c = p.chunks[unit % p.chunk_count];
      Bf16* ys = xs + std::size_t(c.gather_count) * p.shape.in_planes * kBlock;
      turn_chunk(p, c, int(unit / p.chunk_count), source, target, xs, ys);
      add_chunk(p, c, xs, ys, unit == first, sums);
    }
    _tile_release();
  });
  if (used == 1) return;
  parallel_for(size, 4096, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; i += 16) {
      __m512 sum = _mm512_loadu_ps(gradient + i);
      for (int t = 1; t < used; ++t)
        sum = _mm512_add_ps(sum, _mm512_loadu_ps(own_sums + (t - 1) * size + i));
      _mm512_storeu_ps(gradient + i, sum);
    }
  });
}

}  // namespace

std::size_t turned_size(const WeightProduct& p) {
  return chunk_size(p) * (p.chunk_count == 1 ? p.source.lots : p.slots);
}

std::size_t own_sums_size(const WeightProduct& p) {
  return p.chunk_count == 1 ? 0 : p.shape.size() * (p.slots - 1);
}

void run_weight_product(const WeightProduct& p, const Bf16* source, const Bf16* target_gradient,
                        Bf16* turned, float* own_sums, float* gradient) {
  if (p.chunk_count == 1) {
    share_weight_blocks(p, source, target_gradient, turned, gradient);
  } else {
    share_chunks(p, source, target_gradient, turned, own_sums, gradient);
  }
}

}  // namespace convoy::amx
