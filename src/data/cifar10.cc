#include "data/cifar10.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "data/memory_dataset.h"

namespace convoy {
namespace {

void check_length(std::size_t found, std::size_t records, std::string_view name) {
  const std::size_t expected = records * kCifarRecordBytes;
  if (found != expected)
    throw DataError(
        "{}: {}: expected {} bytes ({} records of {}), found {}; run: convoy data get cifar10",
        name, found < expected ? "truncated" : "too long", expected, records, kCifarRecordBytes,
        found);
}

// The part of `wanted` that lies in the file whose records begin at `begin`, counted from there.
Range inside(const Range& wanted, std::size_t begin, std::size_t records) {
  const std::size_t low = std::clamp(wanted.begin, begin, begin + records);
  const std::size_t high = std::clamp(wanted.end(), begin, begin + records);
  return {low - begin, high - low};
}

}  // namespace

void parse_cifar10(std::span<const std::uint8_t> bytes, std::size_t records, std::string_view name,
                   CifarImages& images, std::size_t first) {
  check_length(bytes.size(), records, name);
  for (std::size_t i = 0; i < records; ++i)
    if (bytes[i * kCifarRecordBytes] > 9)
      throw DataError("{}: label of record {} is {}: expected 0 to 9; run: convoy data get cifar10",
                      name, first + i, bytes[i * kCifarRecordBytes]);
  for (std::size_t i = 0; i < records; ++i) {
    const auto record = bytes.subspan(i * kCifarRecordBytes, kCifarRecordBytes);
    images.labels.push_back(record[0]);
    images.pixels.insert(images.pixels.end(), record.begin() + 1, record.end());
  }
}

std::unique_ptr<Dataset> open_cifar10(const CifarFiles& files, CifarPart part, const Cut& cut) {
  std::vector<std::string> names = {"test_batch.bin"};
  if (part == CifarPart::train)
    names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
             "data_batch_5.bin"};
  const std::size_t per_file = files.records_per_file, count = names.size() * per_file;
  const Range wanted = cut.of(count);
  CifarImages images;
  images.labels.reserve(wanted.count);
  images.pixels.reserve(wanted.count * kCifarPixels);
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::filesystem::path path = files.folder / names[i];
    if (!std::filesystem::exists(path))
      throw DataError("{}: not found; run: convoy data get cifar10", path.string());
    const std::unique_ptr<ByteSource> source = files.open(path);
    check_length(source->size(), per_file, path.string());
    const Range records = inside(wanted, i * per_file, per_file);
    bytes.resize(records.count * kCifarRecordBytes);
    source->read(records.begin * kCifarRecordBytes, bytes);
    parse_cifar10(bytes, records.count, path.string(), images, records.begin);
  }
  return std::make_unique<MemoryDataset>(MemoryImages{.shape = {3, 32, 32},
                                                      .classes = 10,
                                                      .bytes = std::move(images.pixels),
                                                      .labels = std::move(images.labels),
                                                      .mean = {0.4914f, 0.4822f, 0.4465f},
                                                      .deviation = {0.2470f, 0.2435f, 0.2616f},
                                                      .first = wanted.begin,
                                                      .whole_size = cut.whole(count)});
}

}  // namespace convoy
