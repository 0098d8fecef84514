#include "data/idx_rows.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/error.h"
#include "data/gzip.h"
#include "data/idx.h"

namespace convoy {
namespace {

constexpr std::size_t kMaxBytes = std::size_t(1)
                                  << 30;  // decompressed; MNIST's largest file has 47 MB

// The bytes of the wanted rows, counted from the first row.
Range bytes_of(const std::vector<std::uint32_t>& dimensions, const Cut& cut) {
  std::size_t row_bytes = 1;
  for (std::size_t i = 1; i < dimensions.size(); ++i) row_bytes *= dimensions[i];
  const Range rows = cut.of(dimensions[0]);
  return {rows.begin * row_bytes, rows.count * row_bytes};
}

void read_zipped(ByteSource& source, int dimensions, const Cut& cut, IdxRows& rows) {
  if (cut.parts > 1 && cut.part == 0)
    spdlog::info("{}: gzipped, so every worker reads all of it; unpacked, each would read its part",
                 rows.path.string());
  std::vector<std::uint8_t> packed(source.size());
  source.read(0, packed);
  const std::string name = rows.path.string();
  const std::vector<std::uint8_t> plain = plain_idx_bytes(std::move(packed), kMaxBytes, name);
  const IdxView view = parse_idx(plain, dimensions, name);
  rows.dimensions = view.dimensions;
  const Range wanted = bytes_of(rows.dimensions, cut);
  const auto some = view.values.subspan(wanted.begin, wanted.count);
  rows.values.assign(some.begin(), some.end());
}

}  // namespace

bool read_idx_rows(const std::filesystem::path& file, int dimensions, const Cut& cut,
                   const OpenBytes& open, IdxRows& rows) {
  std::error_code ignored;
  rows.path = file;
  if (!std::filesystem::exists(rows.path, ignored)) rows.path += ".gz";
  if (!std::filesystem::exists(rows.path, ignored)) return false;
  const std::unique_ptr<ByteSource> source = open(rows.path);
  std::vector<std::uint8_t> header(std::min(source->size(), idx_header_bytes(dimensions)));
  source->read(0, header);
  if (is_gzip(header)) {
    read_zipped(*source, dimensions, cut, rows);
    return true;
  }
  rows.dimensions = parse_idx_header(header, source->size(), dimensions, rows.path.string());
  const Range wanted = bytes_of(rows.dimensions, cut);
  rows.values.resize(wanted.count);
  source->read(header.size() + wanted.begin, rows.values);
  return true;
}

}  // namespace convoy
