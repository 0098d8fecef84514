// The windows of a network's plain input as channels (value channel (c * kernel + ky) * kernel + kx
// at position (oy, ox)), made block by block where they are used, from a padded copy of the images
// in bf16.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/amx/layout.h"
#include "kernels/amx/windows.h"

namespace convoy::amx {

constexpr int kLongestColumn = 1024;  // channels at most

struct ColumnSpec {
  int batch = 0, channels = 0;
  WindowSpec window;
};

// Plain views for kernels.
struct Columns {
  const Bf16* images = nullptr;  // padded, [batch][channels][height][width]
  const std::int32_t* lines =
      nullptr;  // where each line of a window begins, from the window's corner
  int line_count = 0;
  int kernel = 1, stride = 1;
  int width = 0, out_width = 0;
  std::size_t image_size = 0;
};

class ColumnPlan {
 public:
  ColumnPlan() = default;
  explicit ColumnPlan(const ColumnSpec& spec);
  std::size_t padded_bytes() const;
  void pad(const float* plain, Bf16* padded) const;
  Columns over(const Bf16* padded) const;

 private:
  ColumnSpec spec_;
  int height_ = 0, width_ = 0;  // of the padded image
  std::vector<std::int32_t> lines_;
};

// count lines of `length` floats, `from_pitch` apart, to bf16 between `before` and `after` zeros.
struct PaddedLines {
  int count, length, from_pitch, before, after;
};
void narrow_lines(const PaddedLines& lines, const float* from, Bf16* to);

// 32 rows, beginning with row `first` of a plane of this lot, for all planes: plane p at to + p *
// plane_stride.
void fill_columns(const Columns& columns, const Layout& layout, int lot, int first, Bf16* to,
                  std::size_t plane_stride);

}  // namespace convoy::amx
