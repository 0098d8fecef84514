#include "nn/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/error.h"

namespace convoy {
namespace {

// Opens a regular file for reading; a pipe or a device is refused rather than waited for.
int open_regular(const std::string& name, std::uint64_t& file_bytes) {
  const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw DataError("{}: cannot open: {}", name, std::strerror(errno));
  struct stat status {};
  const bool regular = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    ::close(fd);
    throw DataError("{}: is not a file; give the path of a .safetensors file", name);
  }
  file_bytes = std::uint64_t(status.st_size);
  return fd;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : name_(path.string()) {
  std::uint64_t file_bytes = 0;
  fd_ = open_regular(name_, file_bytes);
  try {
    std::vector<std::byte> start(std::min<std::uint64_t>(kLengthBytes, file_bytes));
    read_at(0, start);
    std::string json(header_length(start, file_bytes, name_), '\0');
    read_at(kLengthBytes, std::as_writable_bytes(std::span(json)));
    header_ = parse_header(json, file_bytes, name_);
  } catch (...) {
    ::close(fd_);
    throw;
  }
  for (const StoredTensor& tensor : header_.tensors) by_name_.emplace(tensor.name, &tensor);
}

SafetensorsFile::~SafetensorsFile() { ::close(fd_); }

const StoredTensor* SafetensorsFile::find(std::string_view tensor) const {
  const auto found = by_name_.find(tensor);
  return found == by_name_.end() ? nullptr : found->second;
}

void SafetensorsFile::read(const StoredTensor& tensor, std::span<std::byte> bytes) const {
  CHECK(bytes.size() == tensor.bytes(), "{} bytes for '{}' of {}", bytes.size(), tensor.name,
        tensor.bytes());
  read_at(header_.data_begin + tensor.begin, bytes);
}

void SafetensorsFile::read(const StoredTensor& tensor, std::span<float> floats) const {
  if (tensor.dtype != "F32")
    throw DataError("{}: tensor '{}' is {}, not F32; convert the file to F32", name_,
                    printable(tensor.name), tensor.dtype);
  read(tensor, std::as_writable_bytes(floats));
}

void SafetensorsFile::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd_, bytes.data(), bytes.size(), off_t(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError("{}: cannot read: {}", name_, std::strerror(errno));
    if (got == 0) throw DataError("{}: became shorter while it was read", name_);
    bytes = bytes.subspan(std::size_t(got));
    offset += std::uint64_t(got);
  }
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::span<const TensorSpec> tensors, const Metadata& metadata)
    : file_(path) {
  for (const TensorSpec& tensor : tensors) {
    CHECK(dtype_bytes(tensor.dtype) != 0, "dtype '{}'", tensor.dtype);
    expected_bytes_ += tensor_bytes(tensor, path.string());
  }
  file_.write(format_header(tensors, metadata, path.string()));
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes);
  written_bytes_ += bytes.size();
}

void SafetensorsWriter::commit() {
  CHECK(written_bytes_ == expected_bytes_, "{} bytes were written, {} announced", written_bytes_,
        expected_bytes_);
  file_.commit();
}

}  // namespace convoy
