#include "base/file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace convoy {
namespace {

[[noreturn]] void fail(const char* what, const std::filesystem::path& path) {
  throw DataError("{}: cannot {}: {}", path.string(), what, std::strerror(errno));
}

std::string to_hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

std::vector<std::uint8_t> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("open", path);
  std::vector<std::uint8_t> bytes;
  std::error_code unknown_size;
  const auto size = std::filesystem::file_size(path, unknown_size);
  if (!unknown_size) bytes.reserve(std::min<std::size_t>(size, max_bytes));
  std::vector<std::uint8_t> chunk(1 << 20);
  for (;;) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      ::close(fd);
      errno = error;
      fail("read", path);
    }
    if (got == 0) break;
    if (std::size_t(got) > max_bytes - bytes.size()) {
      ::close(fd);
      throw DataError("{}: more than {} bytes: too long for what it should be", path.string(),
                      max_bytes);
    }
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + got);
  }
  ::close(fd);
  return bytes;
}

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  part_ = target_;
  part_ += fmt::format(".{}.{}.part", ::getpid(), ::gettid());  // tasks may write the same file
  fd_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) fail("write", target_);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!committed_) ::unlink(part_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("write", target_);
    bytes = bytes.subspan(std::size_t(done));
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) fail("write", target_);
  if (::close(std::exchange(fd_, -1)) != 0) fail("write", target_);
  if (::rename(part_.c_str(), target_.c_str()) != 0) fail("rename the finished file to", target_);
  committed_ = true;
  // The rename is durable once the folder is.
  const auto folder =
      target_.has_parent_path() ? target_.parent_path() : std::filesystem::path(".");
  const int folder_fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd >= 0) {
    ::fsync(folder_fd);
    ::close(folder_fd);
  }
}

void write_file_atomically(const std::filesystem::path& target, std::string_view text) {
  AtomicFile file(target);
  file.write(text);
  file.commit();
}

void remove_unfinished(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> parts;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".part") parts.push_back(entry->path());
  for (const std::filesystem::path& part : parts) std::filesystem::remove(part, error);
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : FolderLock(folder, LOCK_EX | LOCK_NB) {}

FolderLock FolderLock::after_others(const std::filesystem::path& folder) {
  return FolderLock(folder, LOCK_EX);
}

FolderLock::FolderLock(const std::filesystem::path& folder, int operation)
    : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_ < 0) fail("open", folder);
  int failed;
  do {
    failed = ::flock(fd_, operation);
  } while (failed && errno == EINTR);
  if (!failed || errno != EWOULDBLOCK) return;
  ::close(fd_);
  throw DataError("{}: another process is writing to this folder: wait for it, or choose another",
                  folder.string());
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw DataError("{}: cannot create the folder: {}", path.string(), error.message());
}

std::string md5_hex(std::span<const std::byte> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const int ok = EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_md5(), nullptr);
  CHECK(ok == 1, "MD5 is not available");
  return to_hex({digest, size});
}

Sha256::Sha256() : state_(EVP_MD_CTX_new()) {
  const int ok = EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(state_), EVP_sha256(), nullptr);
  CHECK(ok == 1, "SHA-256 is not available");
}

Sha256::~Sha256() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(state_)); }

void Sha256::add(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(state_), bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(state_), digest, &size);
  return to_hex({digest, size});
}

}  // namespace convoy
