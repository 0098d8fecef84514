// Columns of first convolutions: 32 rows of windows at a time, in the layout of layout.h.
#include "kernels/amx/columns.h"
#include "kernels/amx/lanes.h"

namespace convoy::amx {

namespace {

CONVOY_INLINE void copy_line(const Bf16* from, Bf16* to, int length) {
  for (int x = 0; x < length; x += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + x),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + x)));
  }
}

// All lines of one window, side by side. Whole vectors of 8 are copied; what is too much is
// overwritten by the next line.
template <int kKernel>
CONVOY_INLINE void copy_window(const Columns& c, const Bf16* corner, Bf16* row) {
  const int kernel = kKernel > 0 ? kKernel : c.kernel;
  for (int line = 0; line < c.line_count; ++line, row += kernel)
    copy_line(corner + c.lines[line], row, kernel);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(row), _mm_setzero_si128());
}

constexpr int kPitch = kLongestColumn + 32;
constexpr int kTogether =
    8;  // rows gathered before they are read again, so that reads do not wait for stores

template <int kKernel>
void fill_rows(const Columns& c, const Layout& l, int lot, int first, Bf16* to,
               std::size_t plane_stride) {
  alignas(64) Bf16 rows[kTogether][kPitch];
  const int used = l.planes * kLanes;
  for (int r = 0; r < kTogether; ++r) {
    for (int i = l.channels & ~31; i < used; i += 32) store(rows[r] + i, zero_numbers());
  }
  for (int group = 0; group < 32; group += kTogether) {
    const int position = (first + group) / l.lot, image = lot * l.lot + (first + group) % l.lot;
    const std::size_t corner = std::size_t(position / c.out_width) * c.stride * c.width +
                               position % c.out_width * c.stride;
    int real = position < l.positions ? l.batch - image : 0;  // a group is of one position
    if (real > kTogether) real = kTogether;
    for (int r = 0; r < real; ++r) {
      copy_window<kKernel>(c, c.images + (image + r) * c.image_size + corner, rows[r]);
    }
    for (int p = 0; p < l.planes; ++p) {
      Bf16* plane = to + p * plane_stride + group * kLanes;
      for (int r = 0; r < kTogether; ++r) {
        store(plane + r * kLanes, r < real ? load(rows[r] + p * kLanes) : zero_numbers());
      }
    }
  }
}

}  // namespace

void narrow_lines(const PaddedLines& lines, const float* from, Bf16* to) {
  for (int line = 0; line < lines.count; ++line, from += lines.from_pitch) {
    for (int i = 0; i < lines.before; ++i) *to++ = 0;
    for (int x = 0; x < lines.length; x += 32) {
      const int left = lines.length - x;
      const std::uint32_t lanes = first_lanes(left);
      const Row row = load_row(lanes, from + x);
      store(lanes, to + x, narrow(row));
    }
    to += lines.length;
    for (int i = 0; i < lines.after; ++i) *to++ = 0;
  }
}

void fill_columns(const Columns& c, const Layout& l, int lot, int first, Bf16* to,
                  std::size_t plane_stride) {
  switch (c.kernel) {
    case 3:
      return fill_rows<3>(c, l, lot, first, to, plane_stride);
    case 5:
      return fill_rows<5>(c, l, lot, first, to, plane_stride);
    case 7:
      return fill_rows<7>(c, l, lot, first, to, plane_stride);
    case 11:
      return fill_rows<11>(c, l, lot, first, to, plane_stride);
    default:
      return fill_rows<0>(c, l, lot, first, to, plane_stride);
  }
}

}  // namespace convoy::amx
