#include "nn/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/error.h"

namespace convoy {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::size_t kMaxDims = 32;

// Listens to the JSON parser and accepts nothing but what a header may say, so that a hostile text
// is refused at its first foreign token: no tree is built, and nesting never grows. Depth 1 is the
// header, 2 a tensor or the metadata, 3 a list.
class HeaderListener : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderListener(std::string_view file) : file_(file) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool number_float(double, const std::string& text) override {
    return unexpected(fmt::format("the number {}", printable(text)));
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_integer(std::int64_t number) override {
    if (depth_ == 3)
      fail("{} in {} is negative", number, field_ == Field::shape ? "shape" : "data_offsets");
    return unexpected("a number");
  }

  bool number_unsigned(std::uint64_t number) override {
    if (depth_ != 3) return unexpected("a number");
    if (number > std::uint64_t(std::numeric_limits<std::int64_t>::max()))
      fail("the number {} is too large", number);
    if (field_ == Field::shape) {
      if (tensor_.dims.size() == kMaxDims) fail("has more than {} dimensions", kMaxDims);
      tensor_.dims.push_back(std::int64_t(number));
    } else {
      if (offsets_ == 2) fail("data_offsets has more than two numbers");
      (offsets_ == 0 ? tensor_.begin : tensor_.end) = number;
      ++offsets_;
    }
    return true;
  }

  bool string(std::string& text) override {
    if (depth_ != 2) return unexpected("a string");
    if (in_metadata_) {
      if (!header_.metadata.emplace(key_, std::move(text)).second)
        throw DataError("{}: metadata '{}' is there twice", file_, printable(key_));
      return true;
    }
    if (field_ != Field::dtype) return unexpected("a string");
    if (dtype_bytes(text) == 0) fail("has the unknown dtype '{}'", printable(text));
    tensor_.dtype = std::move(text);
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ >= 2) return unexpected("an object");
    if (++depth_ == 2) {
      tensor_ = {};
      tensor_.name = name_;
      seen_ = {};
      offsets_ = 0;
    }
    return true;
  }

  bool key(std::string& text) override {
    if (depth_ == 1) {
      name_ = text;
      in_metadata_ = name_ == kMetadataKey;
      if (!names_.insert(name_).second) fail("is there twice");
      return true;
    }
    key_ = text;
    if (in_metadata_) return true;
    static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};
    const auto found = std::find(kFields.begin(), kFields.end(), text);
    if (found == kFields.end()) fail("has the unknown field '{}'", printable(text));
    field_ = Field(found - kFields.begin());
    if (std::exchange(seen_[std::size_t(field_)], true)) fail("has the field '{}' twice", text);
    return true;
  }

  bool end_object() override {
    if (depth_-- == 2 && !in_metadata_) {
      if (!seen_[0]) fail("has no dtype");
      if (!seen_[1]) fail("has no shape");
      if (!seen_[2]) fail("has no data_offsets");
      if (offsets_ != 2) fail("data_offsets has {} numbers, not two", offsets_);
      header_.tensors.push_back(std::move(tensor_));
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || field_ == Field::dtype) return unexpected("a list");
    ++depth_;
    return true;
  }

  bool end_array() override {
    --depth_;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    throw DataError(
        "{}: the header is not valid JSON at its byte {}; the file is damaged or is not "
        "safetensors",
        file_, position);
  }

 private:
  enum class Field { dtype, shape, data_offsets };

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
    throw DataError("{}: tensor '{}' {}", file_, printable(name_),
                    fmt::format(text, std::forward<Args>(args)...));
  }

  bool unexpected(std::string_view what) {
    if (depth_ == 0)
      throw DataError("{}: the header is {} instead of an object; this is not a safetensors file",
                      file_, what);
    if (depth_ == 1) fail("is {} instead of an object", what);
    if (in_metadata_)
      throw DataError("{}: metadata '{}' is {} instead of a string", file_, printable(key_), what);
    static constexpr std::array<const char*, 3> kWanted = {
        "dtype {} {} instead of a string", "shape {} {} instead of a list of whole numbers",
        "data_offsets {} {} instead of a list of two whole numbers"};
    fail(fmt::runtime(kWanted[std::size_t(field_)]), depth_ == 3 ? "holds" : "is", what);
  }

  std::string_view file_;
  SafetensorsHeader header_;
  StoredTensor tensor_;
  std::unordered_set<std::string> names_;
  std::string name_, key_;
  std::array<bool, 3> seen_{};
  Field field_ = Field::dtype;
  int depth_ = 0;
  int offsets_ = 0;
  bool in_metadata_ = false;
};

// Each tensor's range fits its type and shape, and together they cover the data once.
void check_ranges(std::vector<StoredTensor>& tensors, std::uint64_t data_bytes,
                  std::string_view file) {
  for (const StoredTensor& tensor : tensors) {
    const std::string name = printable(tensor.name);
    if (tensor.begin > tensor.end)
      throw DataError("{}: tensor '{}' ends at byte {}, before it begins at {}", file, name,
                      tensor.end, tensor.begin);
    if (tensor.end > data_bytes)
      throw DataError(
          "{}: tensor '{}' ends at byte {} of the data, but the file has only {}; it is "
          "truncated or damaged",
          file, name, tensor.end, data_bytes);
    const std::uint64_t expected = tensor_bytes(tensor, file);
    if (expected != tensor.bytes())
      throw DataError(
          "{}: tensor '{}' needs {} bytes for its shape and dtype {}, but its data_offsets span {}",
          file, name, expected, tensor.dtype, tensor.bytes());
  }
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t covered = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin < covered)
      throw DataError("{}: tensor '{}' begins at byte {} of the data, inside another tensor", file,
                      printable(tensor.name), tensor.begin);
    if (tensor.begin > covered)
      throw DataError(
          "{}: tensor '{}' begins at byte {} of the data, after {} bytes that no tensor has", file,
          printable(tensor.name), tensor.begin, tensor.begin - covered);
    covered = tensor.end;
  }
  if (covered != data_bytes)
    throw DataError("{}: {} bytes follow the last tensor; the file is damaged", file,
                    data_bytes - covered);
}

}  // namespace

std::size_t dtype_bytes(std::string_view dtype) {
  static constexpr std::pair<std::string_view, std::size_t> kTypes[] = {
      {"F32", 4}, {"F64", 8}, {"F16", 2}, {"BF16", 2},    {"I64", 8},
      {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U8", 1},      {"BOOL", 1},
      {"U16", 2}, {"U32", 4}, {"U64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  for (const auto& [name, bytes] : kTypes)
    if (name == dtype) return bytes;
  return 0;
}

std::uint64_t tensor_bytes(const TensorSpec& tensor, std::string_view file) {
  if (std::find(tensor.dims.begin(), tensor.dims.end(), 0) != tensor.dims.end()) return 0;
  std::uint64_t bytes = dtype_bytes(tensor.dtype);
  for (std::int64_t dim : tensor.dims)
    if (__builtin_mul_overflow(bytes, std::uint64_t(dim), &bytes))
      throw DataError("{}: tensor '{}' has a shape of more bytes than any file", file,
                      printable(tensor.name));
  return bytes;
}

std::uint64_t header_length(std::span<const std::byte> start, std::uint64_t file_bytes,
                            std::string_view file) {
  if (start.size() < kLengthBytes || file_bytes < kLengthBytes)
    throw DataError("{}: has {} bytes, too few for a safetensors file", file, file_bytes);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::uint64_t(start[i]) << (8 * i);
  if (length > kMaxHeaderBytes)
    throw DataError(
        "{}: announces a header of {} bytes, more than {}; this is not a safetensors file", file,
        length, kMaxHeaderBytes);
  if (length > file_bytes - kLengthBytes)
    throw DataError("{}: announces a header of {} bytes, but only {} follow; the file is truncated",
                    file, length, file_bytes - kLengthBytes);
  return length;
}

SafetensorsHeader parse_header(std::string_view json, std::uint64_t file_bytes,
                               std::string_view file) {
  HeaderListener listener(file);
  nlohmann::json::sax_parse(json.begin(), json.end(), &listener);
  SafetensorsHeader header = listener.take();
  header.data_begin = kLengthBytes + json.size();
  check_ranges(header.tensors, file_bytes - header.data_begin, file);
  return header;
}

std::string format_header(std::span<const TensorSpec> tensors, const Metadata& metadata,
                          std::string_view file) {
  const auto quoted = [](const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  std::string json = fmt::format("{{\"{}\":{{", kMetadataKey);
  const char* comma = "";
  for (const auto& [key, value] : metadata) {
    json += fmt::format("{}{}:{}", comma, quoted(key), quoted(value));
    comma = ",";
  }
  json += "}";
  std::uint64_t at = 0;
  for (const TensorSpec& tensor : tensors) {
    const std::uint64_t end = at + tensor_bytes(tensor, file);
    json += fmt::format(",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        quoted(tensor.name), tensor.dtype, fmt::join(tensor.dims, ","), at, end);
    at = end;
  }
  json += "}";
  constexpr std::size_t kAlignment = 64;
  json.append((kAlignment - (kLengthBytes + json.size()) % kAlignment) % kAlignment, ' ');
  std::string bytes(kLengthBytes, '\0');
  for (std::size_t i = 0; i < kLengthBytes; ++i) bytes[i] = char(json.size() >> (8 * i));
  return bytes + json;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 100;
  std::string line;
  for (char letter : text.substr(0, kLongest))
    line += std::uint8_t(letter) < 0x20 || letter == 0x7f ? '?' : letter;
  if (text.size() > kLongest) line += "...";
  return line;
}

}  // namespace convoy
