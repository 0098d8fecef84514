// CIFAR-10, binary version: records of a label byte and 3072 bytes, the red, green and blue planes
// of 32x32 pixels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "data/byte_source.h"
#include "data/cut.h"
#include "data/dataset.h"

namespace convoy {

constexpr std::size_t kCifarPixels = 3 * 32 * 32;
constexpr std::size_t kCifarRecordBytes = 1 + kCifarPixels;

struct CifarImages {
  std::vector<std::uint8_t> pixels;  // kCifarPixels per label
  std::vector<std::uint8_t> labels;
};

// Appends records of one file, from its record `first` on, which must be exactly `records`. Throws
// DataError that names `name` on a wrong length or a label above 9; `images` is then as it was.
void parse_cifar10(std::span<const std::uint8_t> bytes, std::size_t records, std::string_view name,
                   CifarImages& images, std::size_t first = 0);

enum class CifarPart { train, test };

struct CifarFiles {
  std::filesystem::path folder;
  std::size_t records_per_file = 10000;
  OpenBytes open = open_file_bytes;
};

// Reads what is wanted of data_batch_1.bin to data_batch_5.bin, or of test_batch.bin; all of them
// must be there and have their length.
std::unique_ptr<Dataset> open_cifar10(const CifarFiles& files, CifarPart part, const Cut& cut = {});

}  // namespace convoy
