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

// Position `at`, at most size - 1 outside of [0, size), mirrored at the first or last position.
int reflected(int at, int size) {
  if (at < 0) return -at;
  return at < size ? at : 2 * (size - 1) - at;
}

}  // namespace

Augment::Augment(const Dataset& dataset, const AugmentOptions& options, std::uint64_t seed)
    : shape_(dataset.shape()), options_(options), seed_(seed) {
  if (options.crop_padding < 0 || options.crop_padding > 4096)
    throw ConfigError("crop padding is {}: expected 0 to 4096 pixels", options.crop_padding);
  if (options.reflect && options.crop_padding >= std::min(shape_.height, shape_.width))
    throw ConfigError("images of {} cannot be padded by {} mirrored pixels: give fewer",
                      shape_.to_string(), options.crop_padding);
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
  const int height = shape_.height, width = shape_.width;
  if (options_.crop_padding == 0 && !options_.flip) {
    const int area = int(shape_.area());
    for (std::size_t c = 0; c < channels_.size(); ++c)
      normalise(image.data() + c * area, area, channels_[c].scale, channels_[c].shift,
                out.data() + c * area);
    return;
  }
  const Change change = choose(epoch, sample);
  float* row = out.data();
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    const std::uint8_t* plane = image.data() + c * shape_.area();
    for (int y = 0; y < height; ++y, row += width) {
      int from = y + change.down;
      if (options_.reflect) from = reflected(from, height);
      if (from < 0 || from >= height)
        std::fill_n(row, width, channels_[c].shift);
      else
        write_row(plane + from * width, change, channels_[c], row);
    }
  }
}

Augment::Change Augment::choose(std::uint32_t epoch, std::uint64_t sample) const {
  Rng rng(seed_, Purpose::augment, epoch, sample);
  const std::uint32_t places = std::uint32_t(2 * options_.crop_padding + 1);
  Change change;
  change.down = int(rng.below(places)) - options_.crop_padding;
  change.right = int(rng.below(places)) - options_.crop_padding;
  change.mirrored = options_.flip && (rng.next() >> 31) != 0;
  if (options_.flip && options_.alternate && epoch > 0)
    change.mirrored = choose(0, sample).mirrored != (epoch % 2 != 0);
  return change;
}

void Augment::write_row(const std::uint8_t* from, const Change& change, const Channel& channel,
                        float* row) const {
  const int width = shape_.width, right = change.right;
  const float scale = channel.scale, shift = channel.shift;
  // Columns [begin, end) of the crop lie inside the image, the others in the padding. Mirroring
  // sends them to [width - end, width - begin).
  const int begin = std::clamp(-right, 0, width), end = std::clamp(width - right, begin, width);
  const auto pad = [&](int x) {
    row[change.mirrored ? width - 1 - x : x] =
        options_.reflect ? float(from[reflected(x + right, width)]) * scale + shift : shift;
  };
  for (int x = 0; x < begin; ++x) pad(x);
  if (change.mirrored)
    normalise_mirrored(from + begin + right, end - begin, scale, shift, row + width - end);
  else
    normalise(from + begin + right, end - begin, scale, shift, row + begin);
  for (int x = end; x < width; ++x) pad(x);
}

}  // namespace convoy
