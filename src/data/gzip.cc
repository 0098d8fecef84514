#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/error.h"

namespace convoy {
namespace {

// A zlib stream that is closed on every way out.
struct Inflater {
  z_stream stream{};
  Inflater() {
    const int ok = inflateInit2(&stream, 15 + 16);  // gzip only
    CHECK(ok == Z_OK, "zlib cannot start: {}", ok);
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

}  // namespace

bool is_gzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

std::vector<std::uint8_t> gunzip(std::span<const std::uint8_t> bytes, std::size_t max_bytes,
                                 std::string_view name) {
  if (bytes.size() > std::numeric_limits<uInt>::max())
    throw DataError("{}: {} bytes of gzip are more than can be read at once", name, bytes.size());
  Inflater inflater;
  z_stream& stream = inflater.stream;
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = uInt(bytes.size());
  std::vector<std::uint8_t> result(
      std::min(max_bytes, std::max<std::size_t>(4096, 3 * bytes.size())));
  std::size_t done = 0;
  for (;;) {
    if (done == result.size()) {
      // One byte beyond the bound tells a stream that just fits from one that does not.
      if (done > max_bytes)
        throw DataError("{}: decompresses to more than {} bytes, which is not this kind of file",
                        name, max_bytes);
      result.resize(std::min(max_bytes + 1, std::max<std::size_t>(4096, 2 * result.size())));
    }
    const std::size_t room = std::min<std::size_t>(result.size() - done, 1u << 30);
    stream.next_out = result.data() + done;
    stream.avail_out = uInt(room);
    const int status = inflate(&stream, Z_NO_FLUSH);
    done += room - stream.avail_out;
    if (status == Z_STREAM_END) break;
    if (status == Z_OK && (stream.avail_in > 0 || stream.avail_out == 0)) continue;
    if (status == Z_OK || status == Z_BUF_ERROR)
      throw DataError("{}: truncated gzip file: ends after {} bytes; fetch it again", name,
                      bytes.size());
    throw DataError("{}: damaged gzip file ({}); fetch it again", name,
                    stream.msg ? stream.msg : "bad data");
  }
  if (done > max_bytes)
    throw DataError("{}: decompresses to more than {} bytes, which is not this kind of file", name,
                    max_bytes);
  result.resize(done);
  return result;
}

}  // namespace convoy
