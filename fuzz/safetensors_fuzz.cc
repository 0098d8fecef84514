// The bytes of a safetensors file: whatever they are, the parser returns tensors that lie inside
// the file or throws DataError.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/error.h"
#include "nn/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace convoy;
  try {
    const std::span bytes = std::as_bytes(std::span(data, size));
    const std::uint64_t length =
        header_length(bytes.first(std::min(kLengthBytes, size)), size, "file");
    const std::string_view json(reinterpret_cast<const char*>(data) + kLengthBytes, length);
    const SafetensorsHeader header = parse_header(json, size, "file");
    std::uint64_t covered = 0;
    for (const StoredTensor& tensor : header.tensors) {
      if (tensor.begin != covered || tensor.end < tensor.begin) std::abort();
      covered = tensor.end;
    }
    if (header.data_begin + covered != size) std::abort();
  } catch (const DataError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
