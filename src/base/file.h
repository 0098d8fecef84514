// Files: whole reads, atomic writes, digests. Every failure is a DataError that names the file and the reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy {

std::vector<std::uint8_t> read_file(const std::filesystem::path& path);

// Writes beside the target, fsyncs, renames: readers see the old file or the new one, never a part. On failure
// (full disk, no permission) the part is removed and the old file is as it was.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();  // removes the part unless commit() has been called
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path part_;
  int fd_ = -1;
};

void write_file_atomically(const std::filesystem::path& target, std::string_view text);

// Creates the folder and its parents.
void make_folder(const std::filesystem::path& path);

std::string md5_hex(std::span<const std::byte> bytes);

// SHA-256 of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void add(std::span<const std::byte> bytes);
  std::string hex();  // ends the digest

 private:
  void* state_;
};

}  // namespace convoy
