#include "base/protobuf.h"

#include <gtest/gtest.h>

#include <array>

namespace convoy {
namespace {

std::string hex(const ProtobufWriter& writer) {
  std::string text;
  for (const char byte : writer.bytes()) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// The examples of the format's own description.
TEST(Protobuf, WritesNumbersAndTexts) {
  ProtobufWriter writer;
  writer.number(1, 150);
  EXPECT_EQ(hex(writer), "089601");
  ProtobufWriter text;
  text.text(2, "testing");
  EXPECT_EQ(hex(text), "120774657374696e67");
  ProtobufWriter outer;
  outer.message(3, writer);
  EXPECT_EQ(hex(outer), "1a03089601");
}

TEST(Protobuf, WritesPackedNegativeAndReal) {
  ProtobufWriter packed;
  packed.numbers(6, std::array<std::int64_t, 3>{3, 270, 86942});
  EXPECT_EQ(hex(packed), "3206038e029ea705");
  ProtobufWriter negative;
  negative.number(1, -2);
  EXPECT_EQ(hex(negative), "08feffffffffffffffff01");
  ProtobufWriter real;
  real.real(1, 1.0f);
  real.real(2, 1.0);
  EXPECT_EQ(hex(real), "0d0000803f11000000000000f03f");
}

TEST(Protobuf, LargeFieldNumbersTakeTwoBytes) {
  ProtobufWriter writer;
  writer.number(20, 1);
  EXPECT_EQ(hex(writer), "a00101");
}

}  // namespace
}  // namespace convoy
