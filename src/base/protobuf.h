// Writes protocol buffers: fields are a key (number and kind) and a value, and nothing else. Enough
// for formats whose readers we do not need (ONNX, TensorBoard), without a dependency.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace convoy {

class ProtobufWriter {
 public:
  void number(int field, std::uint64_t value) {  // int32, int64, bool, enum
    key(field, 0);
    varint(value);
  }
  void number(int field, std::int64_t value) { number(field, std::bit_cast<std::uint64_t>(value)); }
  void number(int field, int value) { number(field, std::int64_t(value)); }
  void real(int field, float value) {
    key(field, 5);
    fixed(value);
  }
  void real(int field, double value) {
    key(field, 1);
    fixed(value);
  }
  void text(int field, std::string_view bytes) {  // string, bytes
    key(field, 2);
    varint(bytes.size());
    bytes_ += bytes;
  }
  void message(int field, const ProtobufWriter& inner) { text(field, inner.bytes_); }
  // Packed: all numbers behind one key.
  void numbers(int field, std::span<const std::int64_t> values) {
    ProtobufWriter inner;
    for (const std::int64_t value : values) inner.varint(std::bit_cast<std::uint64_t>(value));
    message(field, inner);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void key(int field, int kind) { varint(std::uint64_t(field) << 3 | std::uint64_t(kind)); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += char(value | 0x80);
    bytes_ += char(value);
  }
  template <typename Number>
  void fixed(Number value) {  // little-endian, as this machine is
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
  }

  std::string bytes_;
};

}  // namespace convoy
