#include "data/cifar_png.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/cifar10.h"
#include "data/decode.h"

namespace convoy {

std::vector<std::uint8_t> parse_cifar_labels(std::span<const std::uint8_t> json,
                                             std::string_view name) {
  const auto parsed = nlohmann::json::parse(json.begin(), json.end(), nullptr, false);
  if (!parsed.is_array()) throw DataError("{}: expected a JSON list of labels", name);
  std::vector<std::uint8_t> labels;
  for (const auto& value : parsed) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 9)
      throw DataError("{}: label {} is {}: expected 0 to 9", name, labels.size(), value.dump());
    labels.push_back(value.get<std::uint8_t>());
  }
  return labels;
}

std::vector<std::uint8_t> cifar_records(std::span<const std::uint8_t> png,
                                        std::span<const std::uint8_t> labels,
                                        std::string_view name) {
  constexpr std::size_t kArea = kCifarPixels / 3;
  const Image image = decode_image(png, name);
  if (image.width != int(kArea) || std::size_t(image.height) != labels.size() ||
      image.channels != 3)
    throw DataError("{}: expected {}x{} pixels in colour, found {}x{} with {} channels", name,
                    kArea, labels.size(), image.width, image.height, image.channels);
  std::vector<std::uint8_t> records(labels.size() * kCifarRecordBytes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::uint8_t* row = image.pixels.data() + i * kCifarPixels;
    std::uint8_t* record = records.data() + i * kCifarRecordBytes;
    record[0] = labels[i];
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t p = 0; p < kArea; ++p) record[1 + c * kArea + p] = row[3 * p + c];
  }
  return records;
}

}  // namespace convoy
