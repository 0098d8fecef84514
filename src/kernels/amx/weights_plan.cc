// How the products of weight gradients are cut into slabs. See product.h.
#include <algorithm>

#include "kernels/amx/product.h"

namespace convoy::amx {

namespace {

constexpr std::size_t kWholeBytes = 1200 << 10;
constexpr std::size_t kPairBytes = 1 << 20;
constexpr std::size_t kMostBytes = 32 << 20;  // stays in the last-level cache
constexpr int kFewSteps = 32;

// Windows of one position need no rows: lay several together, as long as a row is not too long for
// a slab.
Slide join_rows(Slide s, int lot) {
  if (s.kernel_height != 1 || s.kernel_width != 1 || s.stride != 1 || s.padding != 0) return s;
  if (s.height != s.out_height || s.width != s.out_width) return s;
  int joined = 1;
  for (int n = 1; n <= s.height; ++n) {
    if (s.height % n == 0 && n * s.width * lot <= 32 * kLanes) joined = n;
  }
  s.width = s.out_width = s.width * joined;
  s.height = s.out_height = s.height / joined;
  return s;
}

// The largest slab that fits, in equal parts.
template <typename Fits>
void fill_slab(WeightProduct& p, Fits&& fits) {
  const int lots = p.target.lots, rows = p.slide.out_height;
  p.slab_lots = 1;
  p.slab_rows = rows;
  if (fits()) {
    do ++p.slab_lots;
    while (p.slab_lots <= lots && fits());
    --p.slab_lots;
    const int slabs = (lots + p.slab_lots - 1) / p.slab_lots;
    p.slab_lots = (lots + slabs - 1) / slabs;
  } else {
    while (p.slab_rows > 1 && !fits()) --p.slab_rows;
    const int slabs = (rows + p.slab_rows - 1) / p.slab_rows;
    p.slab_rows = (rows + slabs - 1) / slabs;
  }
}

}  // namespace

WeightProduct plan_weight_product(const Layout& source, const Layout& target,
                                  const WeightShape& shape, Slide slide, int slots) {
  WeightProduct p{
      .source = source, .target = target, .shape = shape, .slide = join_rows(slide, target.lot)};
  p.slots = slots;
  const Slide& s = p.slide;
  p.steps = (s.out_width * target.lot + kLanes - 1) / kLanes;
  if (target.lot == kLanes) {
    p.source_blocks = (s.out_width - 1) * s.stride + s.kernel_width;
    p.step_advance = s.stride;
  } else {
    p.source_blocks = s.kernel_width * p.steps;
    p.kernel_advance = p.steps;
  }
  // Best is a slab that stays in the second-level cache as a whole; where that gives sums of too
  // few steps, one of which each pair of planes stays there.
  fill_slab(p, [&] { return p.turned_size() * sizeof(Bf16) <= kWholeBytes; });
  const int steps = p.slab_lots * p.slab_rows * p.steps;
  if (steps < std::min(kFewSteps, target.lots * s.out_height * p.steps)) {
    fill_slab(p, [&] {
      return (p.source_plane_size() + p.target_plane_size()) * sizeof(Bf16) <= kPairBytes &&
             p.turned_size() * sizeof(Bf16) <= kMostBytes;
    });
  }
  return p;
}

}  // namespace convoy::amx
