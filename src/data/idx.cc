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

std::vector<std::uint32_t> parse_idx_header(std::span<const std::uint8_t> header,
                                            std::size_t file_bytes, int dimensions,
                                            std::string_view name) {
  const std::size_t header_bytes = idx_header_bytes(dimensions);
  if (header.size() < header_bytes)
    throw DataError("{}: truncated: expected at least {} bytes of header, found {}", name,
                    header_bytes, header.size());
  const std::uint32_t expected_magic = 0x0800u | std::uint32_t(dimensions);
  const std::uint32_t magic = big_endian(header, 0);
  if (magic != expected_magic)
    throw DataError(
        "{}: wrong magic number: expected 0x{:08x}, found 0x{:08x}; not the IDX file it should be",
        name, expected_magic, magic);
  std::vector<std::uint32_t> sizes;
  std::uint64_t count = 1;
  for (int i = 0; i < dimensions; ++i) {
    const std::uint32_t size = big_endian(header, 4 + 4 * std::size_t(i));
    sizes.push_back(size);
    if (size != 0 && count > std::numeric_limits<std::uint64_t>::max() / 2 / size)
      throw DataError("{}: dimension {} is {}: the header is damaged", name, i, size);
    count *= size;
  }
  if (file_bytes - header_bytes != count)
    throw DataError("{}: {}: expected {} bytes, found {}", name,
                    file_bytes - header_bytes < count ? "truncated" : "too long",
                    header_bytes + count, file_bytes);
  return sizes;
}

IdxView parse_idx(std::span<const std::uint8_t> bytes, int dimensions, std::string_view name) {
  IdxView view{parse_idx_header(bytes, bytes.size(), dimensions, name), {}};
  view.values = bytes.subspan(idx_header_bytes(dimensions));
  return view;
}

std::vector<std::uint8_t> plain_idx_bytes(std::vector<std::uint8_t> bytes, std::size_t max_bytes,
                                          std::string_view name) {
  if (is_gzip(bytes)) return gunzip(bytes, max_bytes, name);
  return bytes;
}

}  // namespace convoy
