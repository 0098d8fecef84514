// Between plain f32 [batch][channels][positions] and values of this family, and the columns of
// first convolutions.
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
  for_pieces(l, threads(), [&](int, int lot, int plane, int first, int last) {
    for (int row = first * 32; row < last * 32; ++row) {
      const int position = row / l.lot, image = lot * l.lot + row % l.lot;
      const bool real = position < l.positions && image < l.batch;
      body(block_at(l, lot, plane, 0) + std::size_t(row) * kLanes, real ? image : -1, position,
           plane * kLanes);
    }
  });
}

CONVOY_INLINE __mmask32 real_lanes(const Layout& l, int first_channel) {
  const int left = l.channels - first_channel;
  return left >= 32 ? ~0u : (1u << left) - 1;
}

}  // namespace

void import_plain(const Layout& l, const float* plain, Bf16* value) {
  for_placed_rows(l, [&](std::size_t at, int image, int position, int channel) {
    if (image < 0) return store(value + at, _mm512_setzero_si512());
    const float* from =
        plain + (std::size_t(image) * l.channels + channel) * l.positions + position;
    const __mmask32 lanes = real_lanes(l, channel);
    if (l.positions == 1) {
      const Row row = {_mm512_maskz_loadu_ps(__mmask16(lanes), from),
                       _mm512_maskz_loadu_ps(__mmask16(lanes >> 16), from + 16)};
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

namespace {

// Rows of the padded image, with room for copies of whole vectors past its end.
struct PaddedImage {
  int height, width;
  std::size_t channel_size() const { return std::size_t(height) * width; }
};
PaddedImage padded_image(const ColumnSpec& s) {
  return {.height = (s.window.out_height - 1) * s.window.stride + s.window.kernel,
          .width = (s.window.out_width - 1) * s.window.stride + s.window.kernel};
}

void pad_images(const ColumnSpec& s, const float* plain, Bf16* padded) {
  const PaddedImage size = padded_image(s);
  const int pad = s.window.padding;
  parallel_for(std::size_t(s.batch) * s.channels, 1, [&](std::size_t first, std::size_t last) {
    for (std::size_t at = first; at < last; ++at) {
      const float* image = plain + at * s.window.height * s.window.width;
      for (int y = 0; y < size.height; ++y) {
        Bf16* to = padded + at * size.channel_size() + std::size_t(y) * size.width;
        const int from_y = y - pad;
        const bool inside = from_y >= 0 && from_y < s.window.height;
        const float* from = image + std::ptrdiff_t(from_y) * s.window.width - pad;
        for (int x = 0; x < size.width; ++x) {
          const bool real = inside && x >= pad && x < pad + s.window.width;
          to[x] = real ? narrow_number(from[x]) : Bf16(0);
        }
      }
    }
  });
}

// One row of columns: `kernel` numbers from each of channels * kernel lines, then zeros. Whole
// vectors of 8 are copied; what is too much is overwritten by the next.
CONVOY_INLINE void gather_columns(const ColumnSpec& s, const PaddedImage& size, const Bf16* corner,
                                  Bf16* row, int lanes) {
  const int kernel = s.window.kernel;
  int at = 0;
  for (int c = 0; c < s.channels; ++c) {
    for (int ky = 0; ky < kernel; ++ky, at += kernel) {
      const Bf16* from = corner + c * size.channel_size() + std::size_t(ky) * size.width;
      for (int x = 0; x < kernel; x += 8) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(row + at + x),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + x)));
      }
    }
  }
  for (; at < lanes; ++at) row[at] = 0;
}

constexpr int kLongestColumn = 8192;

}  // namespace

std::size_t padded_image_size(const ColumnSpec& s) {
  return std::size_t(s.batch) * s.channels * padded_image(s).channel_size() + 64;
}

void import_columns(const ColumnSpec& s, const Layout& l, const float* plain, Bf16* padded,
                    Bf16* value) {
  pad_images(s, plain, padded);
  const PaddedImage size = padded_image(s);
  parallel_for(std::size_t(l.lots) * l.blocks, 1, [&](std::size_t first, std::size_t last) {
    alignas(64) Bf16 row[kLongestColumn + 64];
    for (std::size_t at = first; at < last; ++at) {
      const int lot = int(at / l.blocks), block = int(at % l.blocks);
      for (int r = 0; r < 32; ++r) {
        const int position = (block * 32 + r) / l.lot, image = lot * l.lot + r % l.lot;
        Bf16* to = value + block_at(l, lot, 0, block) + r * kLanes;
        if (!((l.rows(lot, block) >> r) & 1)) {
          for (int p = 0; p < l.planes; ++p) store(to + p * l.plane_size(), _mm512_setzero_si512());
          continue;
        }
        const int y = position / s.window.out_width * s.window.stride,
                  x = position % s.window.out_width * s.window.stride;
        gather_columns(
            s, size,
            padded + image * s.channels * size.channel_size() + std::size_t(y) * size.width + x,
            row, l.lanes());
        for (int p = 0; p < l.planes; ++p) store(to + p * l.plane_size(), load(row + p * kLanes));
      }
    }
  });
}

}  // namespace convoy::amx
