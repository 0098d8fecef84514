// Batch norm over planes: each lane of a plane is a channel. Values in the layout of layout.h; rows
// that pad stay zero.
#include "kernels/amx/lanes.h"
#include "kernels/amx/rows.h"

namespace convoy::amx {

namespace {

enum class Sign { ignored, from_x, from_y };

// The gradient behind the ReLU, for one row.
template <Sign kSign>
CONVOY_INLINE Numbers masked_gradient(const NormGradient& n, std::size_t at, Row x, Row scale,
                                      Row shift) {
  const Numbers g = load(n.gradient + at);
  if (kSign == Sign::ignored) return g;
  return keep(kSign == Sign::from_y ? positive(load(n.y + at)) : positive(fused(x, scale, shift)),
              g);
}

template <Sign kSign>
void gradient_sums(const Layout& l, const NormGradient& n, double* sums) {
  for_pieces(l, [&](int partial, int lot, int plane, int first, int last) {
    const Row scale = load_row(n.lanes.scale + plane * kLanes),
              shift = load_row(n.lanes.shift + plane * kLanes);
    Row sum = zero_row(), product = zero_row();
    for (std::size_t at = block_at(l, lot, plane, first); at < block_at(l, lot, plane, last);
         at += kLanes) {
      const Row x = load_row(n.x + at);
      const Numbers masked = masked_gradient<kSign>(n, at, x, scale, shift);
      if (kSign == Sign::from_y) store(n.gradient + at, masked);
      const Row g = widen(masked);
      sum = sum + g;
      product = fused(g, x, product);
    }
    double* to = sums + std::size_t(partial) * 2 * l.lanes() + plane * kLanes;
    store_wide(to, sum);
    store_wide(to + l.lanes(), product);
  });
}

}  // namespace

void add_partials(const Layout& l, int width, double* sums) {
  const std::size_t rows = l.partials(), grain = (16384 / rows + 8) / 8 * 8;
  parallel_for(width, grain, [&](std::size_t first, std::size_t last) {
    for (std::size_t row = 1; row < rows; ++row) {
      const double* more = sums + row * width;
      for (std::size_t i = first; i < last; ++i) sums[i] += more[i];
    }
  });
}

void norm_sums(const Layout& l, const Bf16* x, double* sums) {
  for_pieces(l, [&](int partial, int lot, int plane, int first, int last) {
    Row sum = zero_row(), squares = zero_row();
    for (std::size_t at = block_at(l, lot, plane, first); at < block_at(l, lot, plane, last);
         at += kLanes) {
      const Row v = load_row(x + at);
      sum = sum + v;
      squares = fused(v, v, squares);
    }
    double* to = sums + std::size_t(partial) * 2 * l.lanes() + plane * kLanes;
    store_wide(to, sum);
    store_wide(to + l.lanes(), squares);
  });
  add_partials(l, 2 * l.lanes(), sums);
}

void norm_gradient_sums(const Layout& l, const NormGradient& n, double* sums) {
  if (!n.relu) {
    gradient_sums<Sign::ignored>(l, n, sums);
  } else if (n.y) {
    gradient_sums<Sign::from_y>(l, n, sums);
  } else {
    gradient_sums<Sign::from_x>(l, n, sums);
  }
  add_partials(l, 2 * l.lanes(), sums);
}

}  // namespace convoy::amx
