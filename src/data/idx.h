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

// Reads an uncompressed IDX buffer of unsigned bytes with exactly this many dimensions. Throws
// DataError, which names `name`, on a wrong magic number or when the buffer is shorter or longer
// than its header says.
IdxView parse_idx(std::span<const std::uint8_t> bytes, int dimensions, std::string_view name);

// The bytes themselves, or what they decompress to where they are gzipped (bounded by `max_bytes`).
std::vector<std::uint8_t> plain_idx_bytes(std::vector<std::uint8_t> bytes, std::size_t max_bytes,
                                          std::string_view name);

}  // namespace convoy
