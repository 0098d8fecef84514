// Any bytes as an IDX file, plain or gzipped: an error or a view that lies inside the buffer, never
// a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "data/gzip.h"
#include "data/idx.h"

namespace {

constexpr std::size_t kMaxBytes = 1 << 20;

void parse(const std::vector<std::uint8_t>& bytes, int dimensions) {
  try {
    const convoy::IdxView view = convoy::parse_idx(bytes, dimensions, "fuzz");
    std::uint64_t count = 1;
    for (const std::uint32_t dimension : view.dimensions) count *= dimension;
    if (view.values.size() != count) std::abort();
    volatile std::uint8_t last = 0;
    for (const std::uint8_t value : view.values) last = value;
    static_cast<void>(last);
  } catch (const convoy::DataError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> bytes(data, data + size);
  std::vector<std::uint8_t> plain;
  try {
    plain = convoy::plain_idx_bytes(bytes, kMaxBytes, "fuzz");
  } catch (const convoy::DataError&) {
    return 0;
  }
  if (convoy::is_gzip(bytes) && plain.size() > kMaxBytes) std::abort();
  parse(plain, 1);
  parse(plain, 3);
  return 0;
}
