// IDX, the format of MNIST and its descendants: two zero bytes, a type (8: unsigned bytes), the
// number of dimensions, each dimension as a big-endian 32-bit number, then the values, the last
// dimension fastest.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace convoy {

// An array of bytes inside a buffer that the caller keeps alive.
struct IdxView {
  std::vector<std::uint32_t> dimensions;
  std::span<const std::uint8_t> values;
};

// The dimensions that the header of an uncompressed IDX file of `file_bytes` bytes gives; `header`
// is at least the file's first idx_header_bytes(dimensions) bytes, or all of it where it is
// shorter. Throws as parse_idx does.
std::vector<std::uint32_t> parse_idx_header(std::span<const std::uint8_t> header,
                                            std::size_t file_bytes, int dimensions,
                                            std::string_view name);
constexpr std::size_t idx_header_bytes(int dimensions) { return 4 + 4 * std::size_t(dimensions); }

// Reads an uncompressed IDX buffer of unsigned bytes with exactly this many dimensions. Throws
// DataError, which names `name`, on a wrong magic number or when the buffer is shorter or longer
// than its header says.
IdxView parse_idx(std::span<const std::uint8_t> bytes, int dimensions, std::string_view name);

// The bytes themselves, or what they decompress to where they are gzipped (bounded by `max_bytes`).
std::vector<std::uint8_t> plain_idx_bytes(std::vector<std::uint8_t> bytes, std::size_t max_bytes,
                                          std::string_view name);

}  // namespace convoy
