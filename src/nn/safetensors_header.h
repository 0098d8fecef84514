// The header of a safetensors file: eight bytes of length (little-endian), then a JSON object that
// maps each tensor's name to its type, shape and byte range in the data that follow, and
// "__metadata__" to a map of strings.
//
// Files come from anywhere: nothing in a header is believed before it has been checked against the
// file's size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy {

// What a tensor is, before it has a place in a file.
struct TensorSpec {
  std::string name;
  std::string dtype = "F32";       // safetensors' names: F32, I64, ...
  std::vector<std::int64_t> dims;  // none: one number
};

struct StoredTensor : TensorSpec {
  std::uint64_t begin = 0, end = 0;  // bytes, counted from the start of the data
  std::uint64_t bytes() const { return end - begin; }
};

using Metadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  Metadata metadata;
  std::vector<StoredTensor> tensors;  // in the order of their data, which they cover without gaps
  std::uint64_t data_begin = 0;       // in the file
};

// Longer headers are refused, as by the reference implementation.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr std::size_t kLengthBytes = 8;

// Bytes of one element, or 0 for a type that the format does not know.
std::size_t dtype_bytes(std::string_view dtype);

// Bytes of a tensor of this type and shape. Throws DataError (naming `file`) where they do not fit
// into 64 bits.
std::uint64_t tensor_bytes(const TensorSpec& tensor, std::string_view file);

// How many bytes the header takes after the first eight, which are `start` (or fewer, where the
// file is shorter).
std::uint64_t header_length(std::span<const std::byte> start, std::uint64_t file_bytes,
                            std::string_view file);

// Reads the JSON of a header whose file has `file_bytes` in all. Every fault is a DataError of one
// line that names the file, the tensor and what is wrong. Takes memory in proportion to the text,
// whatever it says.
SafetensorsHeader parse_header(std::string_view json, std::uint64_t file_bytes,
                               std::string_view file);

// The first bytes of a file with these tensors, one after the other: length, JSON, and spaces that
// align the data to 64 bytes.
std::string format_header(std::span<const TensorSpec> tensors, const Metadata& metadata,
                          std::string_view file);

// A name as it may stand in a message: one line, not too long.
std::string printable(std::string_view text);

}  // namespace convoy
