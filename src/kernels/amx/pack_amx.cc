// Weight packs from stored weights, and the masked sums of gradients. Layouts: product.h.
#include "kernels/amx/lanes.h"
#include "kernels/amx/product.h"
#include "kernels/amx/rows.h"
#include "kernels/amx/turn.h"

namespace convoy::amx {

namespace {

CONVOY_INLINE void narrow_block(const float* from, Bf16* to) {
  for (int r = 0; r < 32; ++r) store(to + r * kLanes, narrow(load_row(from + r * kLanes)));
}

}  // namespace

void pack_forward(const WeightShape& s, const float* stored, Bf16* pack) {
  parallel_for(std::size_t(s.out_planes) * s.taps * s.in_planes, 1,
               [&](std::size_t first, std::size_t last) {
                 alignas(64) Bf16 block[kBlock];
                 const Interleave interleave;
                 for (std::size_t at = first; at < last; ++at) {
                   const std::size_t in = at % s.in_planes, tap = at / s.in_planes % s.taps,
                                     out = at / s.in_planes / s.taps;
                   narrow_block(stored + ((tap * s.in_planes + in) * s.out_planes + out) * kBlock,
                                block);
                   interleave_rows(interleave, block, pack + at * kBlock);
                 }
               });
}

void pack_backward(const WeightShape& s, const float* stored, Bf16* pack) {
  parallel_for(std::size_t(s.out_planes) * s.taps * s.in_planes, 1,
               [&](std::size_t first, std::size_t last) {
                 alignas(64) Bf16 block[kBlock];
                 for (std::size_t at = first; at < last; ++at) {
                   const std::size_t out = at % s.out_planes, tap = at / s.out_planes % s.taps,
                                     in = at / s.out_planes / s.taps;
                   narrow_block(stored + ((tap * s.in_planes + in) * s.out_planes + out) * kBlock,
                                block);
                   turn_pairs(block, pack + at * kBlock);
                 }
               });
}

void mask_and_sum(const Layout& l, const Bf16* output, Bf16* gradient, double* sums) {
  for_pieces(l, [&](int partial, int lot, int plane, int first, int last) {
    const std::size_t begin = block_at(l, lot, plane, first), rows = std::size_t(last - first) * 32;
    Row sum = zero_row();
    Bf16* g = gradient + begin;
    if (output) {
      const Bf16* y = output + begin;
      for (std::size_t r = 0; r < rows; ++r) {
        const __m512i v =
            _mm512_maskz_mov_epi16(positive(load(y + r * kLanes)), load(g + r * kLanes));
        store(g + r * kLanes, v);
        sum = sum + widen(v);
      }
    } else {
      for (std::size_t r = 0; r < rows; ++r) sum = sum + load_row(g + r * kLanes);
    }
    store_wide(sums + std::size_t(partial) * l.lanes() + plane * kLanes, sum);
  });
  add_partials(l, l.lanes(), sums);
}

}  // namespace convoy::amx
