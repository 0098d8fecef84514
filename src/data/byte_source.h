// A file of which any part can be read, by whatever means: read here, MPI-IO in src/world/mpi.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

namespace convoy {

// Ranks that read one file together may have to do so in step: whoever reads through this interface
// makes the same number of calls for every part of the data, in the same order, and reads nothing
// where the part has nothing.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::size_t size() const = 0;
  // Blocks until all of `bytes` is filled, from `offset` on. Throws DataError that names the file,
  // also where it ends too early.
  virtual void read(std::size_t offset, std::span<std::uint8_t> bytes) = 0;
};

// Throws DataError that names the file.
using OpenBytes = std::function<std::unique_ptr<ByteSource>(const std::filesystem::path&)>;

// By this process alone (pread).
std::unique_ptr<ByteSource> open_file_bytes(const std::filesystem::path& path);

}  // namespace convoy
