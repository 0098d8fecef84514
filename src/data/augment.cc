#include "data/augment.h"

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/rng.h"

namespace convoy {
namespace {

// Both loops have no branches inside, so that the compiler turns them into vector code.
void normalise(const std::uint8_t* in, int count, float scale, float shift, float* out) {
  for (int i = 0; i < count; ++i) out[i] = float(in[i]) * scale + shift;
}

void normalise_mirrored(const std::uint8_t* in, int count, float scale, float shift, float* out) {
  for (int i = 0; i < count; ++i) out[i] = float(in[count - 1 - i]) * scale + shift;
}

}  // namespace

Augment::Augment(const Dataset& dataset, const AugmentOptions& options, std::uint64_t seed)
    : shape_(dataset.shape()), options_(options), seed_(seed) {
  if (options.crop_padding < 0 || options.crop_padding > 4096)
    throw ConfigError("crop padding is {}: expected 0 to 4096 pixels", options.crop_padding);
  const std::vector<float> mean = dataset.mean(), deviation = dataset.deviation();
  CHECK(int(mean.size()) == shape_.channels && int(deviation.size()) == shape_.channels,
        "{} means and {} deviations for {} channels", mean.size(), deviation.size(),
        shape_.channels);
  for (std::size_t c = 0; c < mean.size(); ++c)
    channels_.push_back({1.0f / (255.0f * deviation[c]), -mean[c] / deviation[c]});
}

void Augment::apply(std::span<const std::uint8_t> image, std::uint32_t epoch, std::uint64_t sample,
                    std::span<float> out) const {
  CHECK(image.size() == shape_.count() && out.size() == shape_.count(),
        "{} bytes to {} floats for {}", image.size(), out.size(), shape_.to_string());
  const int height = shape_.height, width = shape_.width, padding = options_.crop_padding;
  if (padding == 0 && !options_.flip) {
    const int area = int(shape_.area());
    for (std::size_t c = 0; c < channels_.size(); ++c)
      normalise(image.data() + c * area, area, channels_[c].scale, channels_[c].shift,
                out.data() + c * area);
    return;
  }
  Rng rng(seed_, Purpose::augment, epoch, sample);
  const std::uint32_t places = std::uint32_t(2 * padding + 1);
  const int down = int(rng.below(places)) - padding;  // row y shows the image's row y + down
  const int right = int(rng.below(places)) - padding;
  const bool mirrored = options_.flip && (rng.next() >> 31) != 0;
  // Columns [begin, end) of the crop lie inside the image, the others in the padding.
  const int begin = std::clamp(-right, 0, width), end = std::clamp(width - right, begin, width);
  float* row = out.data();
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    const auto [scale, shift] = channels_[c];
    const std::uint8_t* plane = image.data() + c * shape_.area();
    for (int y = 0; y < height; ++y, row += width) {
      const int from = y + down;
      if (from < 0 || from >= height || begin == end) {
        std::fill_n(row, width, shift);
        continue;
      }
      const std::uint8_t* inside = plane + from * width + begin + right;
      // Mirroring sends columns [begin, end) to [width - end, width - begin).
      const int first = mirrored ? width - end : begin, last = mirrored ? width - begin : end;
      std::fill(row, row + first, shift);
      if (mirrored)
        normalise_mirrored(inside, end - begin, scale, shift, row + first);
      else
        normalise(inside, end - begin, scale, shift, row + first);
      std::fill(row + last, row + width, shift);
    }
  }
}

}  // namespace convoy
