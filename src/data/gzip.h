// Gzip in memory, with a bound against decompression bombs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace convoy {

// True where the bytes begin with gzip's two magic bytes.
bool is_gzip(std::span<const std::uint8_t> bytes);

// The decompressed bytes. Throws DataError that names `name` where the stream is damaged or cut, or
// where it would grow beyond `max_bytes`.
std::vector<std::uint8_t> gunzip(std::span<const std::uint8_t> bytes, std::size_t max_bytes,
                                 std::string_view name);

}  // namespace convoy
