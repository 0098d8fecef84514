// Weight packs from stored weights, and the masked sums of gradients. Layouts: product.h.
#include "kernels/amx/lanes.h"
#include "kernels/amx/product.h"
#include "kernels/amx/rows.h"
#include "kernels/amx/turn.h"

namespace convoy::amx {

namespace {

// Calls body(tap, in plane, out plane, block) for all blocks in the order in which they are stored:
// memory is read at full speed from end to end, but not from page to page.
template <typename Body>
void for_blocks(const WeightShape& s, const float* stored, Body&& body) {
  parallel_for(std::size_t(s.taps) * s.in_planes * s.out_planes, 1,
               [&](std::size_t first, std::size_t last) {
                 for (std::size_t at = first; at < last; ++at) {
                   const std::size_t row = at / s.out_planes;
                   body(row / s.in_planes, row % s.in_planes, at % s.out_planes,
                        stored + at * kBlock);
                 }
               });
}

}  // namespace

void pack_forward(const WeightShape& s, const float* stored, Bf16* pack) {
  const Interleave interleave;
  for_blocks(s, stored, [&](std::size_t tap, std::size_t in, std::size_t out, const float* block) {
    interleave_rows(interleave, block, pack + ((out * s.taps + tap) * s.in_planes + in) * kBlock);
  });
}

void pack_backward(const WeightShape& s, const float* stored, Bf16* pack) {
  for_blocks(s, stored, [&](std::size_t tap, std::size_t in, std::size_t out, const float* block) {
    turn_pairs(block, pack + ((in * s.taps + tap) * s.out_planes + out) * kBlock);
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
        const Numbers v = keep(positive(load(y + r * kLanes)), load(g + r * kLanes));
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
