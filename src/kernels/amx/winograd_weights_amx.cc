// Gradients of weights by Winograd's algorithm: all threads take the rows of a chunk to their
// points, then each sums up some of the points. Layouts: winograd.h.
#include "kernels/amx/winograd_points.h"

namespace convoy::amx {

namespace {

// Few rows stay in the third-level cache; with many, reading and writing the sums takes less time
// than making them.
int chunk_rows(const WinogradProduct& p) {
  constexpr int kMost = 128;
  return p.rows() < kMost ? p.rows() : kMost;
}
PointRows source_rows(const WinogradProduct& p) { return {chunk_rows(p), p.source.lanes()}; }
PointRows target_rows(const WinogradProduct& p) { return {chunk_rows(p), p.target.lanes()}; }

// From their points to where they are stored; then weights move while their gradient is in the
// cache.
void store_gradient(const WinogradProduct& p, const PointWeights& w, const float* sums,
                    const WeightGradient& g) {
  const std::size_t pairs = std::size_t(p.source.planes) * p.target.planes, pitch = pairs * kBlock;
  parallel_for(pairs, 1, [&](std::size_t first, std::size_t last) {
    for (std::size_t pair = first; pair < last; ++pair) {
      const int in = int(pair / p.target.planes), out = int(pair % p.target.planes);
      float* to = g.sums + pair * kBlock;
      for (int channel = 0; channel < kLanes; ++channel) {
        const float* from = sums + w.at(out, in * kLanes + channel);
        Row line[kSide], half[3 * kSide], taps[3];
        for (int j = 0; j < kSide; ++j) {
          for (int i = 0; i < kSide; ++i) line[i] = load_row(from + (i * kSide + j) * w.point);
          winograd::transform_weight_products<RowVector, 3>(line, 1, half + j, kSide);
        }
        for (int i = 0; i < 3; ++i) {
          winograd::transform_weight_products<RowVector, 3>(half + i * kSide, 1, taps, 1);
          for (int j = 0; j < 3; ++j)
            store_row(to + (i * 3 + j) * pitch + channel * kLanes, taps[j]);
        }
      }
      if (!g.update) continue;
      for (int tap = 0; tap < 9; ++tap)
        g.update->apply(g.stored + tap * pitch + pair * kBlock, {to + tap * pitch, kBlock});
    }
  });
}

}  // namespace

std::size_t winograd_gradient_scratch_size(const WinogradProduct& p) {
  return PointWeights(p.source.planes, p.target.planes).size() + source_rows(p).size() +
         target_rows(p).size();
}

void run_winograd_gradient(const WinogradProduct& p, const Bf16* source,
                           const Bf16* target_gradient, float* scratch, const WeightGradient& g) {
  const PointRows from = source_rows(p), to = target_rows(p);
  const PointWeights w(p.source.planes, p.target.planes);
  float* values = scratch + w.size();
  float* gradients = values + from.size();
  const int rows = chunk_rows(p);
  for (int begin = 0; begin < p.rows(); begin += rows) {
    const int count = p.rows() - begin < rows ? p.rows() - begin : rows;
    parallel_for(count, kGroup, [&](std::size_t first, std::size_t last) {
      to_points<kSide, winograd::transform_source<RowVector>>(
          p, p.source, p.height, p.width, p.before, source, begin + int(first), begin + int(last),
          from, values + first * from.row);
      to_points<kTileSide, winograd::transform_gradients<RowVector, kTileSide>>(
          p, p.target, p.out_height, p.out_width, 0, target_gradient, begin + int(first),
          begin + int(last), to, gradients + first * to.row);
    });
    parallel_for(
        std::size_t(kPoints) * w.outer_planes, 1, [&](std::size_t first, std::size_t last) {
          for (std::size_t item = first; item < last; ++item) {
            const int point = int(item) / w.outer_planes, plane = int(item) % w.outer_planes;
            multiply_panel({.left = values + point * from.point,
                            .left_row = 1,
                            .left_step = from.row,
                            .right = gradients + point * to.point + plane * kLanes,
                            .right_step = to.row,
                            .sums = scratch + point * w.point + w.at(plane, 0),
                            .sums_row = kLanes},
                           w.inner, count, begin > 0);
          }
        });
  }
  store_gradient(p, w, scratch, g);
}

}  // namespace convoy::amx
