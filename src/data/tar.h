// Reads tar archives, gzipped or not, as a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace convoy {

struct TarOptions {
  std::uint64_t max_file_bytes = std::uint64_t(128) << 20;  // of a file that is wanted
  std::uint64_t max_total_bytes = std::uint64_t(4) << 30;   // decompressed, against bombs
};

// Calls `wanted` with the path of each regular file inside, in order, and `take` with the bytes of
// those it accepts. Nothing is written to disk. Throws DataError that names the archive where it is
// no tar, damaged, cut or too large.
void read_tar(
    const std::filesystem::path& archive, const TarOptions& options,
    const std::function<bool(const std::string& path)>& wanted,
    const std::function<void(const std::string& path, std::vector<std::uint8_t> bytes)>& take);

}  // namespace convoy
