#include "data/idx.h"

#include <limits>

#include "base/error.h"
#include "data/gzip.h"

namespace convoy {
namespace {

std::uint32_t big_endian(std::span<const std::uint8_t> bytes, std::size_t at) {
  return std::uint32_t(bytes[at]) << 24 | std::uint32_t(bytes[at + 1]) << 16 |
         std::uint32_t(bytes[at + 2]) << 8 | std::uint32_t(bytes[at + 3]);
}

}  // namespace

IdxView parse_idx(std::span<const std::uint8_t> bytes, int dimensions, std::string_view name) {
  const std::size_t header = 4 + 4 * std::size_t(dimensions);
  if (bytes.size() < header)
    throw DataError("{}: truncated: expected at least {} bytes of header, found {}", name, header,
                    bytes.size());
  const std::uint32_t expected_magic = 0x0800u | std::uint32_t(dimensions);
  const std::uint32_t magic = big_endian(bytes, 0);
  if (magic != expected_magic)
    throw DataError(
        "{}: wrong magic number: expected 0x{:08x}, found 0x{:08x}; not the IDX file it should be",
        name, expected_magic, magic);
  IdxView view;
  std::uint64_t count = 1;
  for (int i = 0; i < dimensions; ++i) {
    const std::uint32_t dimension = big_endian(bytes, 4 + 4 * std::size_t(i));
    view.dimensions.push_back(dimension);
    if (dimension != 0 && count > std::numeric_limits<std::uint64_t>::max() / 2 / dimension)
      throw DataError("{}: dimension {} is {}: the header is damaged", name, i, dimension);
    count *= dimension;
  }
  if (bytes.size() - header != count)
    throw DataError("{}: {}: expected {} bytes, found {}", name,
                    bytes.size() - header < count ? "truncated" : "too long", header + count,
                    bytes.size());
  view.values = bytes.subspan(header);
  return view;
}

std::vector<std::uint8_t> plain_idx_bytes(std::vector<std::uint8_t> bytes, std::size_t max_bytes,
                                          std::string_view name) {
  if (is_gzip(bytes)) return gunzip(bytes, max_bytes, name);
  return bytes;
}

}  // namespace convoy
