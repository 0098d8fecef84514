#include "data/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace convoy {
namespace {

class FileBytes final : public ByteSource {
 public:
  explicit FileBytes(const std::filesystem::path& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) fail("open");
    struct stat status;
    if (::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode)) {
      size_ = std::size_t(status.st_size);
      return;
    }
    ::close(fd_);
    throw DataError("{}: not a file", path.string());
  }
  ~FileBytes() override { ::close(fd_); }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::size_t size() const override { return size_; }

  void read(std::size_t offset, std::span<std::uint8_t> bytes) override {
    while (!bytes.empty()) {
      const ssize_t got = ::pread(fd_, bytes.data(), bytes.size(), off_t(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("read");
      if (got == 0)
        throw DataError("{}: truncated: ends at byte {} while it is read", path_.string(), offset);
      offset += std::size_t(got);
      bytes = bytes.subspan(std::size_t(got));
    }
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw DataError("{}: cannot {}: {}", path_.string(), what, std::strerror(errno));
  }

  std::filesystem::path path_;
  int fd_;
  std::size_t size_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> open_file_bytes(const std::filesystem::path& path) {
  return std::make_unique<FileBytes>(path);
}

}  // namespace convoy
