#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "data/decode.h"

namespace convoy {
namespace {

constexpr int kSmallSide = 64;  // up to here an image is scaled to exactly the wanted size
constexpr double kMaxScaledSide = 1e9;

// Which source pixels make one target pixel, along one axis.
struct Taps {
  int first;
  std::vector<float> weights;  // sum to 1
};

// A triangle of radius 1 source pixel where the axis grows, 1 target pixel where it shrinks.
std::vector<Taps> triangle_taps(int from, int to) {
  const double scale = double(from) / to, radius = std::max(1.0, scale);
  std::vector<Taps> result(static_cast<std::size_t>(to));
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, int(std::floor(centre - radius)));
    const int last = std::min(from, int(std::ceil(centre + radius)));
    Taps& taps = result[std::size_t(i)];
    taps.first = first;
    double sum = 0;
    for (int j = first; j < last; ++j) {
      const double weight = std::max(0.0, 1.0 - std::abs((j + 0.5 - centre) / radius));
      taps.weights.push_back(float(weight));
      sum += weight;
    }
    for (float& weight : taps.weights) weight = float(weight / sum);
  }
  return result;
}

double covering_scale(ImageSize size, const Shape& shape) {
  const double margin = std::min(shape.height, shape.width) > kSmallSide ? 256.0 / 224.0 : 1.0;
  return margin * std::max(double(shape.width) / size.width, double(shape.height) / size.height);
}

Image centre(const Image& image, ImageSize size) {
  if (size.width == image.width && size.height == image.height) return image;
  const std::size_t channels = std::size_t(image.channels);
  const std::size_t row = std::size_t(size.width) * channels;
  Image result{size.width, size.height, image.channels, {}};
  result.pixels.reserve(row * std::size_t(size.height));
  const int left = (image.width - size.width) / 2, top = (image.height - size.height) / 2;
  for (int y = 0; y < size.height; ++y) {
    const std::size_t at = std::size_t(top + y) * std::size_t(image.width) + std::size_t(left);
    const auto begin = image.pixels.begin() + std::ptrdiff_t(at * channels);
    result.pixels.insert(result.pixels.end(), begin, begin + std::ptrdiff_t(row));
  }
  return result;
}

}  // namespace

Image resize(const Image& image, ImageSize size) {
  CHECK(size.width > 0 && size.height > 0, "resize to {}x{}", size.width, size.height);
  if (size.width == image.width && size.height == image.height) return image;
  const std::size_t channels = std::size_t(image.channels);
  const std::size_t in_row = std::size_t(image.width) * channels;
  const std::size_t out_row = std::size_t(size.width) * channels;
  const std::vector<Taps> down = triangle_taps(image.height, size.height);
  const std::vector<Taps> across = triangle_taps(image.width, size.width);
  Image result{size.width, size.height, image.channels, {}};
  result.pixels.resize(out_row * std::size_t(size.height));
  std::vector<float> line(in_row);  // source rows weighted into one, at the source's width
  for (std::size_t y = 0; y < down.size(); ++y) {
    std::fill(line.begin(), line.end(), 0.0f);
    for (std::size_t j = 0; j < down[y].weights.size(); ++j) {
      const std::uint8_t* in = image.pixels.data() + (std::size_t(down[y].first) + j) * in_row;
      const float weight = down[y].weights[j];
      for (std::size_t i = 0; i < in_row; ++i) line[i] += weight * float(in[i]);
    }
    std::uint8_t* out = result.pixels.data() + y * out_row;
    for (const Taps& taps : across) {
      for (std::size_t c = 0; c < channels; ++c) {
        float value = 0.5f;
        for (std::size_t j = 0; j < taps.weights.size(); ++j)
          value += taps.weights[j] * line[(std::size_t(taps.first) + j) * channels + c];
        *out++ = std::uint8_t(std::clamp(value, 0.0f, 255.0f));
      }
    }
  }
  return result;
}

ImageSize covering_size(ImageSize size, const Shape& shape) {
  const double scale = covering_scale(size, shape);
  return {int(std::clamp(std::round(size.width * scale), double(shape.width), kMaxScaledSide)),
          int(std::clamp(std::round(size.height * scale), double(shape.height), kMaxScaledSide))};
}

// The part that the crop will show is cut out first, so that work and memory follow the wanted
// shape even for an image that is one pixel wide and very long.
void fit_image(const Image& image, const Shape& shape, std::span<std::uint8_t> out) {
  CHECK(shape.channels == 1 || shape.channels == 3, "{} channels of an image", shape.channels);
  CHECK(out.size() == shape.count(), "{} bytes for {}", out.size(), shape.to_string());
  const double scale = covering_scale({image.width, image.height}, shape);
  const ImageSize part{std::clamp(int(std::lround(shape.width / scale)), 1, image.width),
                       std::clamp(int(std::lround(shape.height / scale)), 1, image.height)};
  const Image scaled = resize(centre(image, part), {shape.width, shape.height});
  const std::size_t area = shape.area();
  for (int y = 0; y < shape.height; ++y)
    for (int x = 0; x < shape.width; ++x) {
      const std::size_t at = std::size_t(y) * std::size_t(shape.width) + std::size_t(x);
      const std::uint8_t* pixel = scaled.pixels.data() + at * std::size_t(scaled.channels);
      std::uint8_t* to = out.data() + at;
      if (shape.channels == 3)
        for (std::size_t c = 0; c < 3; ++c) to[c * area] = pixel[scaled.channels == 3 ? c : 0];
      else if (scaled.channels == 1)
        *to = pixel[0];
      else  // the weights of ITU-R BT.601
        *to = std::uint8_t((299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2] + 500) / 1000);
    }
}

}  // namespace convoy
