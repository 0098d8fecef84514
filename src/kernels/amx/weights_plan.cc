// How the products of weight gradients are cut into slabs. See product.h.
#include <algorithm>

#include "kernels/amx/product.h"

namespace convoy::amx {

namespace {

constexpr std::size_t kWholeBytes = 1200 << 10;
constexpr std::size_t kPairBytes = 1 << 20;
constexpr std::size_t kMostBytes = 32 << 20;  // stays in the last-level cache
constexpr int kFewSteps = 24;
constexpr int kShortest = 8;  // steps of a slab that does not have whole rows

// Windows of one position need no rows: a plane is one long row.
Slide join_rows(Slide s) {
  if (s.kernel_height != 1 || s.kernel_width != 1 || s.stride != 1 || s.padding != 0) return s;
  if (s.height != s.out_height || s.width != s.out_width) return s;
  s.width = s.out_width = s.width * s.height;
  s.height = s.out_height = 1;
  return s;
}

void set_slab_steps(WeightProduct& p, int steps) {
  p.slab_steps = steps;
  if (p.target.lot == kLanes) {
    p.source_blocks = (steps - 1) * p.slide.stride + p.slide.kernel_width;
    p.kernel_advance = 1;
    p.step_advance = p.slide.stride;
  } else {
    p.source_blocks = p.slide.kernel_width * steps;
    p.kernel_advance = steps;
    p.step_advance = 1;
  }
}

int equal_part(int whole, int most) {
  const int parts = (whole + most - 1) / most;
  return (whole + parts - 1) / parts;
}

// The most rows, and of whole planes the most lots, that fit, in equal parts. False where not even
// one row does.
template <typename Fits>
bool fill_slab(WeightProduct& p, int steps, Fits&& fits) {
  set_slab_steps(p, steps);
  const int lots = p.target.lots, rows = p.slide.out_height;
  p.slab_lots = 1;
  for (p.slab_rows = rows; p.slab_rows > 1 && !fits();) --p.slab_rows;
  if (!fits()) return false;
  if (p.slab_rows < rows || steps < p.steps) {
    p.slab_rows = equal_part(rows, p.slab_rows);
    return true;
  }
  while (p.slab_lots <= lots && fits()) ++p.slab_lots;
  p.slab_lots = equal_part(lots, p.slab_lots - 1);
  return true;
}

// Rows whole if possible, else halves, quarters, ...
template <typename Fits>
bool cut_slab(WeightProduct& p, Fits&& fits) {
  const int enough = std::min(kFewSteps, p.target.lots * p.slide.out_height * p.steps);
  for (int parts = 1; parts == 1 || p.steps / parts >= kShortest; ++parts) {
    if (!fill_slab(p, (p.steps + parts - 1) / parts, fits)) continue;
    return p.slab_lots * p.slab_rows * p.slab_steps >= enough;
  }
  return false;
}

}  // namespace

WeightProduct plan_weight_product(const Layout& source, const Layout& target,
                                  const WeightShape& shape, Slide slide, int slots) {
  WeightProduct p{.source = source, .target = target, .shape = shape, .slide = join_rows(slide)};
  p.slots = slots;
  p.steps = (p.slide.out_width * target.lot + kLanes - 1) / kLanes;
  // Best is a slab that stays in the second-level cache as a whole; where that gives sums of too
  // few steps, one of which each pair of planes stays there.
  if (cut_slab(p, [&] { return p.turned_size() * sizeof(Bf16) <= kWholeBytes; })) return p;
  const auto pair_fits = [&] {
    return (p.source_plane_size() + p.target_plane_size()) * sizeof(Bf16) <= kPairBytes &&
           p.turned_size() * sizeof(Bf16) <= kMostBytes;
  };
  if (cut_slab(p, pair_fits)) return p;
  set_slab_steps(p, std::min(p.steps, kFewSteps));
  p.slab_lots = p.slab_rows = 1;
  return p;
}

}  // namespace convoy::amx
