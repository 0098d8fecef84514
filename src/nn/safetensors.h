// Files of named tensors in the safetensors format. Tensors pass through one at a time, so a large
// file is never in memory as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "nn/safetensors_header.h"

namespace convoy {

// An open file whose header has been read and checked. Every fault is a DataError that names the
// file.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& name() const { return name_; }
  const Metadata& metadata() const { return header_.metadata; }
  std::span<const StoredTensor> tensors() const { return header_.tensors; }
  const StoredTensor* find(std::string_view tensor) const;  // null where there is none

  // `bytes` has the size of the tensor.
  void read(const StoredTensor& tensor, std::span<std::byte> bytes) const;
  // A tensor of F32.
  void read(const StoredTensor& tensor, std::span<float> floats) const;

 private:
  void read_at(std::uint64_t offset, std::span<std::byte> bytes) const;

  std::string name_;
  int fd_ = -1;
  SafetensorsHeader header_;
  std::unordered_map<std::string_view, const StoredTensor*> by_name_;
};

// Writes a file atomically: announce all tensors, then hand over their bytes in that order, then
// commit.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorSpec> tensors,
                    const Metadata& metadata);
  void write(std::span<const std::byte> bytes);
  void write(std::span<const float> floats) { write(std::as_bytes(floats)); }
  void commit();

 private:
  AtomicFile file_;
  std::uint64_t expected_bytes_ = 0;
  std::uint64_t written_bytes_ = 0;
};

}  // namespace convoy
