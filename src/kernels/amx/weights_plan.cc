// How the products of weight gradients are cut into cells and slabs. See product.h.
#include <algorithm>

#include "kernels/amx/product.h"

namespace convoy::amx {

namespace {

constexpr std::size_t kWholeBytes = 1200 << 10;  // what a cell works on, in the second-level cache
constexpr std::size_t kPairBytes = 1 << 20;
constexpr std::size_t kMostBytes = 32 << 20;  // stays in the last-level cache
constexpr int kFewSteps = 24;
constexpr int kShortest = 8;  // steps of a slab that does not have whole rows
constexpr int kParts = 8;
constexpr int kFewPairs = 8;  // of planes: too few to share among threads

// Windows of one position need neither rows nor images: a plane is one long row of blocks.
void join_positions(WeightProduct& p) {
  Slide& s = p.slide;
  if (s.kernel_height != 1 || s.kernel_width != 1 || s.stride != 1 || s.padding != 0) return;
  if (s.height != s.out_height || s.width != s.out_width) return;
  s.width = s.out_width = p.target.blocks;
  s.height = s.out_height = 1;
  p.images = kLanes;
}

void set_slab_steps(WeightProduct& p, int steps) {
  p.slab_steps = steps;
  p.source_blocks = (steps - 1) * p.step_advance() + p.slide.kernel_width;
}

void set_slab_rows(WeightProduct& p, int lots, int rows) {
  p.slab_lots = lots;
  p.slab_rows = rows;
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
  const int lots = p.target.lots;
  int rows = p.rows;
  for (set_slab_rows(p, 1, rows); rows > 1 && !fits();) set_slab_rows(p, 1, --rows);
  if (!fits()) return false;
  if (rows < p.rows || steps < p.slide.out_width) {
    set_slab_rows(p, 1, equal_part(p.rows, rows));
    return true;
  }
  int many = 1;
  for (set_slab_rows(p, 1, rows); many <= lots && fits();) set_slab_rows(p, ++many, rows);
  set_slab_rows(p, equal_part(lots, many - 1), rows);
  return true;
}

// Rows whole if possible, else halves, quarters, ...
template <typename Fits>
bool cut_slab(WeightProduct& p, Fits&& fits) {
  const int all = p.slide.out_width;
  const int enough = std::min(kFewSteps, p.target.lots * p.rows * all);
  for (int parts = 1; parts == 1 || all / parts >= kShortest; ++parts) {
    if (!fill_slab(p, (all + parts - 1) / parts, fits)) continue;
    return p.slab_lots * p.slab_rows * p.slab_steps >= enough;
  }
  return false;
}

// Each thread turns what it multiplies, so planes are shared so that little is turned twice; a
// source block takes about four times as long as one of the gradient.
struct PlaneParts {
  int ins = 1, outs = 1;
};
PlaneParts share_planes(const WeightShape& shape, int threads) {
  PlaneParts best;
  double least = 0;
  for (int ins = 1; ins <= std::min(threads, shape.in_planes); ++ins) {
    const int outs = std::min(threads / ins, shape.out_planes);
    const int mine = (shape.in_planes + ins - 1) / ins,
              yours = (shape.out_planes + outs - 1) / outs;
    const double cost = 2.0 * mine * yours * shape.taps + 4.0 * mine + yours;
    if (ins > 1 && cost >= least) continue;
    least = cost;
    best = {.ins = ins, .outs = outs};
  }
  return best;
}

// The slabs are the same for any number of threads, as if there were two, so that no sum depends on
// it.
void choose_slabs(WeightProduct& p, bool in_parts) {
  const PlaneParts parts = in_parts ? PlaneParts() : share_planes(p.shape, 2);
  const auto cell = [&] {
    return (p.source_plane_size() * ((p.shape.in_planes + parts.ins - 1) / parts.ins) +
            p.target_plane_size() * ((p.shape.out_planes + parts.outs - 1) / parts.outs)) *
           sizeof(Bf16);
  };
  // Best is a slab that stays in the second-level cache as a whole; where that gives sums of too
  // few steps, one of which each pair of planes stays there.
  if (cut_slab(p, [&] { return cell() <= kWholeBytes; })) return;
  const auto pair_fits = [&] {
    return (p.source_plane_size() + p.target_plane_size()) * sizeof(Bf16) <= kPairBytes &&
           cell() <= kMostBytes;
  };
  if (cut_slab(p, pair_fits)) return;
  set_slab_steps(p, std::min(p.slide.out_width, kFewSteps));
  set_slab_rows(p, 1, 1);
}

}  // namespace

WeightProduct plan_weight_product(const Layout& source, const Layout& target,
                                  const WeightShape& shape, Slide slide, int slots) {
  WeightProduct p{.source = source, .target = target, .shape = shape, .slide = slide};
  p.slots = slots;
  p.images = target.lot;
  join_positions(p);
  p.rows = (p.slide.out_height + p.block_rows() - 1) / p.block_rows();
  if (p.slide.kernel_height == 1 && p.slide.padding == 0) p.row_advance = p.slide.stride;
  if (p.slide.kernel_width == 1) p.column_advance = p.slide.stride;
  const bool in_parts = slide.columns || shape.in_planes * shape.out_planes < kFewPairs;
  choose_slabs(p, in_parts);
  if (in_parts) {
    p.parts = std::min(kParts, p.slabs());
  } else {
    const PlaneParts parts = share_planes(p.shape, slots);
    p.in_parts = parts.ins;
    p.out_parts = parts.outs;
  }
  return p;
}

}  // namespace convoy::amx
