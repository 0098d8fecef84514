// What is done with the sums of a product before they are stored (product.h, Finish), row by row of
// one target plane. Only for kernels (*_amx.cc).
#pragma once

#include "kernels/amx/lanes.h"
#include "kernels/amx/product.h"

namespace convoy::amx {

template <Finish::Kind kKind>
struct Finisher {
  static constexpr bool kSums = kKind == Finish::norm_sums || kKind == Finish::gradient;

  Row bias, floor, scale = zero_row(), shift = zero_row(), sum = zero_row(), products = zero_row();
  const Layout* layout;
  int plane;
  const Finish* how;
  Bf16* target;

  Finisher(const Layout& l, const Finish& f, int which_plane, Bf16* to)
      : layout(&l), plane(which_plane), how(&f), target(to) {
    if (kKind == Finish::bias || kKind == Finish::logits)
      bias = load_row(f.bias_lanes + plane * kLanes);
    if (kKind == Finish::gradient && f.scale) {
      scale = load_row(f.scale + plane * kLanes);
      shift = load_row(f.shift + plane * kLanes);
    }
    floor = same_row(f.relu ? 0.0f : -__builtin_inff());
  }

  // `at` in the target; `real`: 1, or 0 for a row that pads. `image` counts over the batch.
  inline __attribute__((always_inline)) void finish(Row v, std::size_t at, std::uint32_t real,
                                                    int image) {
    if (kKind == Finish::bias) v = keep(0u - real, largest(v + bias, floor));
    if (kKind == Finish::add) v = v + load_row(target + at);
    if (kKind == Finish::gradient) return finish_gradient(at, v);
    if (kKind == Finish::norm_sums) {
      sum = sum + v;
      products = fused(v, v, products);
    }
    if (kKind == Finish::logits) {
      if (!real) return;
      const std::uint32_t lanes = first_lanes(layout->channels - plane * kLanes);
      float* to = how->logits_out + std::size_t(image) * layout->channels + plane * kLanes;
      v = v + bias;
      return store_row(lanes, to, v);
    }
    store(target + at, narrow(v));
  }

  inline __attribute__((always_inline)) void finish_gradient(std::size_t at, Row v) {
    if (how->added) v = v + load_row(target + at);
    Numbers g = narrow(v);
    const Row factor = how->factor ? load_row(how->factor + at) : zero_row();
    if (how->scale)
      g = keep(positive(fused(factor, scale, shift)), g);
    else if (how->value)
      g = keep(positive(load(how->value + at)), g);
    store(target + at, g);
    v = widen(g);
    sum = sum + v;
    if (how->factor) products = fused(v, factor, products);
  }

  // Writes or adds the sums so far to `partial`, [2][lanes], and begins anew.
  void hand_over(double* partial, bool fresh) {
    double* to = partial + plane * kLanes;
    alignas(64) double mine[2][kLanes];
    store_wide(mine[0], sum);
    store_wide(mine[1], products);
    for (int which = 0; which < 2; ++which, to += layout->lanes())
      for (int lane = 0; lane < kLanes; ++lane)
        to[lane] = fresh ? mine[which][lane] : to[lane] + mine[which][lane];
    sum = products = zero_row();
  }
};

}  // namespace convoy::amx
