// Values made by lanes from others (making.h), block by block, in the layout of layout.h.
#include "kernels/amx/lanes.h"
#include "kernels/amx/making.h"

namespace convoy::amx {

namespace {

enum class Form { forward, forward_more, backward, backward_signed };

template <Form kForm>
void make(const Layout& l, const Making& m, int lot, int plane, int first, int last) {
  constexpr bool kBackward = kForm == Form::backward || kForm == Form::backward_signed;
  const int lane = plane * kLanes;
  const Row a = load_row(m.a + lane), c = load_row(m.c + lane), floor = same_row(m.floor);
  const Row b = kBackward ? load_row(m.b + lane) : zero_row();
  const bool sign = kForm == Form::backward_signed;
  const Row scale = sign ? load_row(m.scale + lane) : zero_row(),
            shift = sign ? load_row(m.shift + lane) : zero_row();
  for (int block = first; block < last; ++block) {
    const std::uint32_t rows = l.rows(lot, block);
    const std::size_t begin = block_at(l, lot, plane, block);
    for (int r = 0; r < 32; ++r) {
      const std::size_t at = begin + r * kLanes;
      Row made;
      if (kBackward) {
        const Row more = load_row(m.more + at);
        Numbers x = load(m.x + at);
        if (sign) x = keep(positive(fused(more, scale, shift)), x);
        made = fused(widen(x), a, fused(more, b, c));
      } else {
        const Row base = kForm == Form::forward_more ? load_row(m.more + at) + c : c;
        made = largest(fused(load_row(m.x + at), a, base), floor);
      }
      store(m.to + at, narrow(keep(lanes_if(rows, r), made)));
    }
  }
}

}  // namespace

void make_blocks(const Layout& l, const Making& m, int lot, int plane, int first, int last) {
  if (m.b) {
    m.scale ? make<Form::backward_signed>(l, m, lot, plane, first, last)
            : make<Form::backward>(l, m, lot, plane, first, last);
  } else {
    m.more ? make<Form::forward_more>(l, m, lot, plane, first, last)
           : make<Form::forward>(l, m, lot, plane, first, last);
  }
}

void make_value(const Layout& l, const Making& m) {
  for_pieces(l, [&](int, int lot, int plane, int first, int last) {
    make_blocks(l, m, lot, plane, first, last);
  });
}

}  // namespace convoy::amx
