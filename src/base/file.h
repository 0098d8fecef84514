// Files: whole reads, atomic writes, digests. Every failure is a DataError that names the file and
// the reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace convoy {

// The whole file, which must not have more than `max_bytes`; a device has no size that tells.
std::vector<std::uint8_t> read_file(
    const std::filesystem::path& path,
    std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

// Writes beside the target, fsyncs, renames: readers see the old file or the new one, never a part.
// On failure (full disk, no permission) the part is removed and the old file is as it was.
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
  bool committed_ = false;
};

void write_file_atomically(const std::filesystem::path& target, std::string_view text);

// Removes the parts that writers left in the folder when they were killed. Nobody may be writing
// there.
void remove_unfinished(const std::filesystem::path& folder);

// A folder that one process at a time writes to. Released when it or the process ends; leaves no
// file behind.
class FolderLock {
 public:
  FolderLock() = default;
  // Throws DataError where another process has it. Does nothing where the file system knows no
  // locks.
  explicit FolderLock(const std::filesystem::path& folder);
  // The same for a few reads and writes: waits until no other process has it.
  static FolderLock after_others(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FolderLock& operator=(FolderLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

 private:
  FolderLock(const std::filesystem::path& folder, int operation);
  int fd_ = -1;
};

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
