#include "kernels/amx/columns.h"

#include <algorithm>

#include "kernels/parallel.h"

namespace convoy::amx {

ColumnPlan::ColumnPlan(const ColumnSpec& spec)
    : spec_(spec),
      height_((spec.window.out_height - 1) * spec.window.stride + spec.window.kernel),
      width_((spec.window.out_width - 1) * spec.window.stride + spec.window.kernel) {
  for (int c = 0; c < spec.channels; ++c) {
    for (int ky = 0; ky < spec.window.kernel; ++ky) lines_.push_back((c * height_ + ky) * width_);
  }
}

std::size_t ColumnPlan::padded_bytes() const {
  // The last line is read in whole vectors.
  return (std::size_t(spec_.batch) * spec_.channels * height_ * width_ + 64) * sizeof(Bf16);
}

void ColumnPlan::pad(const float* plain, Bf16* padded) const {
  const WindowSpec& w = spec_.window;
  const int above = std::min(w.padding, height_),
            inside = std::clamp(height_ - w.padding, 0, w.height);
  const int left = std::min(w.padding, width_), length = std::clamp(width_ - w.padding, 0, w.width);
  const PaddedLines lines{.count = inside,
                          .length = length,
                          .from_pitch = w.width,
                          .before = left,
                          .after = width_ - left - length};
  const std::size_t size = std::size_t(height_) * width_;
  parallel_for(
      std::size_t(spec_.batch) * spec_.channels, 1, [&](std::size_t first, std::size_t last) {
        for (std::size_t at = first; at < last; ++at) {
          Bf16* to = padded + at * size;
          std::fill_n(to, std::size_t(above) * width_, Bf16(0));
          narrow_lines(lines, plain + at * w.height * w.width, to + std::size_t(above) * width_);
          std::fill(to + std::size_t(above + inside) * width_, to + size, Bf16(0));
        }
      });
}

Columns ColumnPlan::over(const Bf16* padded) const {
  return {.images = padded,
          .lines = lines_.data(),
          .line_count = int(lines_.size()),
          .kernel = spec_.window.kernel,
          .stride = spec_.window.stride,
          .width = width_,
          .out_width = spec_.window.out_width,
          .image_size = std::size_t(spec_.channels) * height_ * width_};
}

}  // namespace convoy::amx
