#include "data/synthetic.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/rng.h"

namespace convoy {
namespace {

constexpr int kGrid = 4;                    // a pattern is this many random points across and down
constexpr float kPatternDeviation = 40.0f;  // in grey levels
constexpr std::uint32_t kPatternEpoch = 2;  // keys patterns apart from the noise of both parts
constexpr int kMaxClasses = 1'000'000;
constexpr std::size_t kMaxCount = 1'000'000'000;
constexpr std::size_t kMaxPixels = std::size_t(1) << 28;

// Where a pixel lies between the points of the grid.
struct Position {
  int first;
  float share;  // of the point after `first`
};

std::vector<Position> positions(int side) {
  std::vector<Position> result;
  for (int i = 0; i < side; ++i) {
    const float at = side > 1 ? float(i) * (kGrid - 1) / float(side - 1) : 0.0f;
    const int first = std::min(int(at), kGrid - 2);
    result.push_back({first, at - float(first)});
  }
  return result;
}

class Synthetic final : public Dataset {
 public:
  Synthetic(const SyntheticSpec& spec, SyntheticPart part, std::uint64_t seed, const Cut& cut)
      : spec_(spec),
        part_(part),
        seed_(seed),
        whole_size_(cut.whole(count())),
        range_(cut.of(count())),
        rows_(positions(spec.shape.height)),
        columns_(positions(spec.shape.width)) {
    points_.reserve(std::size_t(spec.classes) * points_per_class());
    for (int c = 0; c < spec.classes; ++c) {
      Rng rng(seed, Purpose::synthetic, kPatternEpoch, std::uint64_t(c));
      for (std::size_t i = 0; i < points_per_class(); ++i)
        points_.push_back(kPatternDeviation * rng.normal());
    }
  }

  std::size_t size() const override { return range_.count; }
  std::size_t first() const override { return range_.begin; }
  std::size_t whole_size() const override { return whole_size_; }
  Shape shape() const override { return spec_.shape; }
  int classes() const override { return spec_.classes; }
  int label(std::size_t index) const override {
    return int((range_.begin + index) % std::size_t(spec_.classes));
  }
  std::vector<float> mean() const override {
    return std::vector<float>(std::size_t(spec_.shape.channels), 0.5f);
  }
  std::vector<float> deviation() const override {
    return std::vector<float>(std::size_t(spec_.shape.channels), 0.2f);
  }

  void read(std::size_t index, std::span<std::uint8_t> image) const override {
    CHECK(index < size() && image.size() == spec_.shape.count(), "image {} of {} into {} bytes",
          index, size(), image.size());
    Rng rng(seed_, Purpose::synthetic, std::uint32_t(part_), range_.begin + index);
    const float* points = points_.data() + std::size_t(label(index)) * points_per_class();
    std::uint8_t* out = image.data();
    for (int c = 0; c < spec_.shape.channels; ++c, points += kGrid * kGrid)
      for (const Position& row : rows_) {
        write_row(points + row.first * kGrid, row.share, rng, out);
        out += spec_.shape.width;
      }
  }

 private:
  std::size_t count() const {
    return part_ == SyntheticPart::train ? spec_.train_count : spec_.test_count;
  }
  std::size_t points_per_class() const { return std::size_t(spec_.shape.channels) * kGrid * kGrid; }

  // One row of pixels: bilinear between two rows of the grid, plus noise that is uniform over +-64
  // levels.
  void write_row(const float* above, float share, Rng& rng, std::uint8_t* out) const {
    float line[kGrid];
    for (int i = 0; i < kGrid; ++i) line[i] = above[i] + share * (above[i + kGrid] - above[i]);
    std::uint32_t noise = 0;
    for (std::size_t x = 0; x < columns_.size(); ++x) {
      if (x % 4 == 0) noise = rng.next();
      const Position& column = columns_[x];
      const float pattern =
          line[column.first] + column.share * (line[column.first + 1] - line[column.first]);
      const float level = 64.0f + pattern + float((noise >> (8 * (x % 4))) & 127);
      out[x] = std::uint8_t(std::clamp(level, 0.0f, 255.0f));
    }
  }

  SyntheticSpec spec_;
  SyntheticPart part_;
  std::uint64_t seed_;
  std::size_t whole_size_;
  Range range_;
  std::vector<Position> rows_, columns_;
  std::vector<float> points_;  // class, channel, row, column
};

std::size_t parse_count(std::string_view text, std::string_view whole, std::string_view field,
                        std::size_t max) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > max)
    throw ConfigError(
        "--data {}: {} is \"{}\": expected a number from 1 to {}, as in "
        "synthetic:3x32x32:10:2048",
        whole, field, text, max);
  return value;
}

}  // namespace

SyntheticSpec parse_synthetic(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (parts.size() < 3 || parts.size() > 4 || parts[0] != "synthetic")
    throw ConfigError(
        "--data {}: expected synthetic:CxHxW:CLASSES or synthetic:CxHxW:CLASSES:COUNT, as in "
        "synthetic:3x32x32:10:2048",
        text);
  SyntheticSpec spec;
  spec.shape = parse_shape(parts[1], fmt::format("--data {}: shape", text));
  if (spec.shape.count() > kMaxPixels)
    throw ConfigError("--data {}: shape {} has more than {} values", text, parts[1], kMaxPixels);
  spec.classes = int(parse_count(parts[2], text, "CLASSES", kMaxClasses));
  if (std::size_t(spec.classes) * std::size_t(spec.shape.channels) * kGrid * kGrid > kMaxPixels)
    throw ConfigError("--data {}: {} classes of {} channels are more than fits in memory", text,
                      spec.classes, spec.shape.channels);
  if (parts.size() == 4) spec.train_count = parse_count(parts[3], text, "COUNT", kMaxCount);
  spec.test_count = std::max<std::size_t>(1, spec.train_count / 4);
  return spec;
}

std::unique_ptr<Dataset> make_synthetic(const SyntheticSpec& spec, SyntheticPart part,
                                        std::uint64_t seed, const Cut& cut) {
  return std::make_unique<Synthetic>(spec, part, seed, cut);
}

}  // namespace convoy
