// Pooling by lists of positions: a position is `lot` rows of 32 channels that lie together. Layout:
// layout.h.
#include "kernels/amx/lanes.h"
#include "kernels/amx/rows.h"

namespace convoy::amx {

namespace {

// Calls body(plane among all planes, position) for every position of every plane, and clears the
// rows that pad each plane.
template <typename Body>
void for_positions(const Layout& l, Bf16* value, Body&& body) {
  const std::size_t planes = std::size_t(l.lots) * l.planes;
  parallel_for(planes * l.positions, 4, [&](std::size_t first, std::size_t last) {
    for (std::size_t at = first; at < last; ++at) {
      const std::size_t plane = at / l.positions;
      const int position = int(at % l.positions);
      body(plane, position);
      if (position + 1 < l.positions) continue;
      for (int row = l.positions * l.lot; row < l.blocks * 32; ++row) {
        store(value + plane * l.plane_size() + std::size_t(row) * kLanes, zero_numbers());
      }
    }
  });
}

}  // namespace

void max_pool_forward(const Layout& s, const Layout& t, WindowView w, bool relu, const Bf16* x,
                      Bf16* y, std::uint8_t* index) {
  const std::size_t step = std::size_t(t.lot) * kLanes;
  for_positions(t, y, [&](std::size_t plane, int position) {
    const Bf16* from = x + plane * s.plane_size();
    Bf16* to = y + plane * t.plane_size() + position * step;
    std::uint8_t* taps = index ? index + (plane * t.positions + position) * step : nullptr;
    const Reference* first = w.references + w.begin[position];
    const Reference* last = w.references + w.begin[position + 1];
    for (std::size_t row = 0; row < step; row += kLanes) {
      Numbers best = zero_numbers(), tap = same_numbers(kNobody);
      const bool take_first = !relu && first != last;
      if (take_first) {
        best = ordered(load(from + first->source * step + row));
        tap = same_numbers(first->tap);
      }
      for (const Reference* r = first + take_first; r < last; ++r) {
        const Numbers v = ordered(load(from + r->source * step + row));
        const std::uint32_t taken = larger(v, best);
        best = largest(v, best);
        tap = choose(taken, same_numbers(r->tap), tap);
      }
      store(to + row, ordered(best));
      if (taps) store_bytes(taps + row, tap);
    }
  });
}

void max_pool_backward(const Layout& s, const Layout& t, WindowView w, const Bf16* gradient,
                       const std::uint8_t* index, Bf16* to) {
  const std::size_t step = std::size_t(t.lot) * kLanes;
  for_positions(s, to, [&](std::size_t plane, int position) {
    const Bf16* from = gradient + plane * t.plane_size();
    const std::uint8_t* taps = index + plane * t.positions * step;
    Bf16* target = to + plane * s.plane_size() + position * step;
    const Reference* first = w.references + w.begin[position];
    const Reference* last = w.references + w.begin[position + 1];
    const auto chosen = [&](const Reference* r, std::size_t row) {
      return keep(equal_bytes(taps + r->source * step + row, r->tap),
                  load(from + r->source * step + row));
    };
    if (last - first == 1) {
      for (std::size_t row = 0; row < step; row += kLanes) store(target + row, chosen(first, row));
      return;
    }
    for (std::size_t row = 0; row < step; row += kLanes) {
      Row sum = zero_row();
      for (const Reference* r = first; r < last; ++r) sum = sum + widen(chosen(r, row));
      store(target + row, narrow(sum));
    }
  });
}

void average_pool_forward(const Layout& s, const Layout& t, WindowView w, const float* factor,
                          const Bf16* x, Bf16* y) {
  const std::size_t step = std::size_t(t.lot) * kLanes;
  for_positions(t, y, [&](std::size_t plane, int position) {
    const Bf16* from = x + plane * s.plane_size();
    Bf16* to = y + plane * t.plane_size() + position * step;
    const Row scale = same_row(factor[position]);
    for (std::size_t row = 0; row < step; row += kLanes) {
      Row sum = zero_row();
      for (int i = w.begin[position]; i < w.begin[position + 1]; ++i) {
        sum = sum + load_row(from + w.references[i].source * step + row);
      }
      store(to + row, narrow(sum * scale));
    }
  });
}

void average_pool_backward(const Layout& s, const Layout& t, WindowView w, const float* factor,
                           const Bf16* gradient, Bf16* to) {
  const std::size_t step = std::size_t(t.lot) * kLanes;
  for_positions(s, to, [&](std::size_t plane, int position) {
    const Bf16* from = gradient + plane * t.plane_size();
    Bf16* target = to + plane * s.plane_size() + position * step;
    for (std::size_t row = 0; row < step; row += kLanes) {
      Row sum = zero_row();
      for (int i = w.begin[position]; i < w.begin[position + 1]; ++i) {
        const int which = w.references[i].source;
        sum = fused(load_row(from + which * step + row), same_row(factor[which]), sum);
      }
      store(target + row, narrow(sum));
    }
  });
}

}  // namespace convoy::amx
