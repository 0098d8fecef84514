#include "data/tar.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include "base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kBlock = 512;
using Header = std::array<std::uint8_t, kBlock>;

struct CloseGz {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

// The decompressed bytes of an archive; zlib passes a file that is not gzipped through as it is.
class Stream {
 public:
  Stream(const std::filesystem::path& archive, std::uint64_t max_bytes)
      : name_(archive.string()), left_(max_bytes), file_(gzopen(archive.c_str(), "rb")) {
    if (!file_) throw DataError("{}: cannot open: {}", name_, std::strerror(errno));
    gzbuffer(file_.get(), 1 << 18);
  }

  // Fills the span, or returns false where the stream ends before its first byte.
  bool read(std::span<std::uint8_t> bytes) {
    if (bytes.size() > left_)
      throw DataError("{}: unpacks to more than expected; not the right archive", name_);
    left_ -= bytes.size();
    std::size_t done = 0;
    while (done < bytes.size()) {
      const int got = gzread(file_.get(), bytes.data() + done,
                             unsigned(std::min<std::size_t>(bytes.size() - done, 1 << 30)));
      if (got < 0) {
        int code = 0;
        throw DataError("{}: damaged archive: {}", name_, gzerror(file_.get(), &code));
      }
      if (got == 0) break;
      done += std::size_t(got);
    }
    if (done == 0 && !bytes.empty()) return false;
    if (done < bytes.size()) throw DataError("{}: truncated archive", name_);
    return true;
  }

  void skip(std::uint64_t count) {
    std::vector<std::uint8_t> sink(std::size_t(std::min<std::uint64_t>(count, 1 << 18)));
    while (count > 0) {
      const std::size_t piece = std::size_t(std::min<std::uint64_t>(count, sink.size()));
      if (!read(std::span(sink).first(piece))) throw DataError("{}: truncated archive", name_);
      count -= piece;
    }
  }

  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::uint64_t left_;
  std::unique_ptr<gzFile_s, CloseGz> file_;
};

std::string text_field(const Header& header, std::size_t at, std::size_t size) {
  const auto begin = header.begin() + std::ptrdiff_t(at), end = begin + std::ptrdiff_t(size);
  return {begin, std::find(begin, end, std::uint8_t(0))};
}

// Octal digits, perhaps after blanks and before a blank or a zero.
std::uint64_t octal_field(const Header& header, std::size_t at, std::size_t size,
                          const std::string& name) {
  std::uint64_t value = 0;
  bool any = false;
  for (std::size_t i = at; i < at + size; ++i) {
    const std::uint8_t c = header[i];
    if (c == ' ' && !any) continue;
    if (c == ' ' || c == 0) break;
    if (c < '0' || c > '7' || value >> 60 != 0)
      throw DataError("{}: not a tar archive, or a damaged one", name);
    value = value * 8 + (c - '0');
    any = true;
  }
  return value;
}

void check_header(const Header& header, const std::string& name) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : header[i];
  if (octal_field(header, 148, 8, name) != sum)
    throw DataError("{}: not a tar archive, or a damaged one", name);
}

}  // namespace

void read_tar(const std::filesystem::path& archive, const TarOptions& options,
              const std::function<bool(const std::string&)>& wanted,
              const std::function<void(const std::string&, std::vector<std::uint8_t>)>& take) {
  Stream stream(archive, options.max_total_bytes);
  Header header;
  while (stream.read(header)) {
    if (std::all_of(header.begin(), header.end(), [](std::uint8_t c) { return c == 0; })) return;
    check_header(header, stream.name());
    const std::uint64_t bytes = octal_field(header, 124, 12, stream.name());
    const std::uint64_t padding = (kBlock - bytes % kBlock) % kBlock;
    const std::string prefix = std::memcmp(header.data() + 257, "ustar", 5) == 0
                                   ? text_field(header, 345, 155)
                                   : std::string();
    const std::string path = (prefix.empty() ? "" : prefix + "/") + text_field(header, 0, 100);
    const bool regular = header[156] == '0' || header[156] == 0;
    if (!regular || !wanted(path)) {
      stream.skip(bytes + padding);
      continue;
    }
    if (bytes > options.max_file_bytes)
      throw DataError("{}: {} has {} bytes: expected at most {}", stream.name(), path, bytes,
                      options.max_file_bytes);
    std::vector<std::uint8_t> content(static_cast<std::size_t>(bytes));
    if (!stream.read(content)) throw DataError("{}: truncated archive", stream.name());
    stream.skip(padding);
    take(path, std::move(content));
  }
}

}  // namespace convoy
