#include "base/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Shape, CountsAndPrints) {
  const Shape shape{3, 32, 16};
  EXPECT_EQ(shape.count(), 1536u);
  EXPECT_EQ(shape.area(), 512u);
  EXPECT_EQ(shape.to_string(), "3x32x16");
  EXPECT_EQ((Shape{10}.count()), 10u);
}

TEST(Shape, DoesNotOverflow) {
  EXPECT_EQ((Shape{65536, 65536, 65536}.count()), std::size_t{1} << 48);
}

TEST(Shape, ParsesWhatItPrints) {
  EXPECT_EQ(parse_shape("3x224x224", "input"), (Shape{3, 224, 224}));
  EXPECT_EQ(parse_shape("1x1x65536", "input"), (Shape{1, 1, 65536}));
}

TEST(Shape, RefusesEverythingElse) {
  for (const char* text :
       {"", "3", "3x224", "3x224x", "3x224x224x", "3x224x224x1", "x224x224", "0x224x224",
        "-3x224x224", "3x0x224", "3x224x65537", "3x224x99999999999", "ax224x224", "3X224X224",
        " 3x224x224", "3x224x224 ", "3.0x224x224", "+3x224x224", "3,224,224"})
    EXPECT_THAT([&] { parse_shape(text, "--input"); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("--input"), HasSubstr("3x224x224"))))
        << text;
}

}  // namespace
}  // namespace convoy
