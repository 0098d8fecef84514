#include "data/cifar10.h"

#include <string>

#include "base/error.h"
#include "base/file.h"
#include "data/memory_dataset.h"

namespace convoy {

void parse_cifar10(std::span<const std::uint8_t> bytes, std::size_t records, std::string_view name,
                   CifarImages& images) {
  const std::size_t expected = records * kCifarRecordBytes;
  if (bytes.size() != expected)
    throw DataError(
        "{}: {}: expected {} bytes ({} records of {}), found {}; run: convoy data get cifar10",
        name, bytes.size() < expected ? "truncated" : "too long", expected, records,
        kCifarRecordBytes, bytes.size());
  for (std::size_t i = 0; i < records; ++i)
    if (bytes[i * kCifarRecordBytes] > 9)
      throw DataError("{}: label of record {} is {}: expected 0 to 9; run: convoy data get cifar10",
                      name, i, bytes[i * kCifarRecordBytes]);
  for (std::size_t i = 0; i < records; ++i) {
    const auto record = bytes.subspan(i * kCifarRecordBytes, kCifarRecordBytes);
    images.labels.push_back(record[0]);
    images.pixels.insert(images.pixels.end(), record.begin() + 1, record.end());
  }
}

std::unique_ptr<Dataset> open_cifar10(const std::filesystem::path& folder, CifarPart part,
                                      std::size_t records_per_file) {
  std::vector<std::string> names = {"test_batch.bin"};
  if (part == CifarPart::train)
    names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
             "data_batch_5.bin"};
  CifarImages images;
  images.labels.reserve(names.size() * records_per_file);
  images.pixels.reserve(names.size() * records_per_file * kCifarPixels);
  for (const std::string& name : names) {
    const std::filesystem::path path = folder / name;
    if (!std::filesystem::exists(path))
      throw DataError("{}: not found; run: convoy data get cifar10", path.string());
    parse_cifar10(read_file(path), records_per_file, path.string(), images);
  }
  return std::make_unique<MemoryDataset>(MemoryImages{.shape = {3, 32, 32},
                                                      .classes = 10,
                                                      .bytes = std::move(images.pixels),
                                                      .offset = 0,
                                                      .labels = std::move(images.labels),
                                                      .mean = {0.4914f, 0.4822f, 0.4465f},
                                                      .deviation = {0.2470f, 0.2435f, 0.2616f}});
}

}  // namespace convoy
