// Between plain f32 [batch][channels][positions] and values of this family.
#include "kernels/amx/lanes.h"
#include "kernels/amx/rows.h"

namespace convoy::amx {

namespace {

CONVOY_INLINE Bf16 narrow_number(float v) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &v, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000) return Bf16((bits >> 16) | 0x40);
  return Bf16((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
CONVOY_INLINE float widen_number(Bf16 v) {
  const std::uint32_t bits = std::uint32_t(v) << 16;
  float f;
  __builtin_memcpy(&f, &bits, sizeof f);
  return f;
}

// Calls body(offset of the row in the value, image or -1, position, first channel) for every row.
template <typename Body>
void for_placed_rows(const Layout& l, Body&& body) {
  for_pieces(l, [&](int, int lot, int plane, int first, int last) {
    for (int row = first * 32; row < last * 32; ++row) {
      const int position = row / l.lot, image = lot * l.lot + row % l.lot;
      const bool real = position < l.positions && image < l.batch;
      body(block_at(l, lot, plane, 0) + std::size_t(row) * kLanes, real ? image : -1, position,
           plane * kLanes);
    }
  });
}

}  // namespace

void import_plain(const Layout& l, const float* plain, Bf16* value) {
  for_placed_rows(l, [&](std::size_t at, int image, int position, int channel) {
    if (image < 0) return store(value + at, zero_numbers());
    const float* from =
        plain + (std::size_t(image) * l.channels + channel) * l.positions + position;
    const std::uint32_t lanes = first_lanes(l.channels - channel);
    if (l.positions == 1) {
      const Row row = load_row(lanes, from);
      return store(value + at, narrow(row));
    }
    for (int c = 0; c < 32; ++c) {
      value[at + c] =
          (lanes >> c) & 1 ? narrow_number(from[std::size_t(c) * l.positions]) : Bf16(0);
    }
  });
}

void export_plain(const Layout& l, const Bf16* value, float* plain) {
  for_placed_rows(l, [&](std::size_t at, int image, int position, int channel) {
    if (image < 0) return;
    float* to = plain + (std::size_t(image) * l.channels + channel) * l.positions + position;
    for (int c = 0; c < 32 && channel + c < l.channels; ++c)
      to[std::size_t(c) * l.positions] = widen_number(value[at + c]);
  });
}

}  // namespace convoy::amx
