#include "data/cifar10.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "data/child.h"
#include "data/cifar_png.h"
#include "data/test_files.h"

namespace convoy {
namespace {

using test::Bytes;
using test::message_of;
using ::testing::HasSubstr;

// Record i has the label i % 10 and pixels that tell record and place.
Bytes records(std::size_t count, std::size_t first = 0) {
  Bytes bytes;
  for (std::size_t i = first; i < first + count; ++i) {
    bytes.push_back(std::uint8_t(i % 10));
    for (std::size_t p = 0; p < kCifarPixels; ++p) bytes.push_back(std::uint8_t(i * 31 + p * 7));
  }
  return bytes;
}

TEST(Cifar10, ParsesRecords) {
  CifarImages images;
  parse_cifar10(records(3), 3, "f", images);
  parse_cifar10(records(2, 3), 2, "f", images);
  EXPECT_EQ(images.labels, (Bytes{0, 1, 2, 3, 4}));
  ASSERT_EQ(images.pixels.size(), 5 * kCifarPixels);
  EXPECT_EQ(images.pixels[4 * kCifarPixels + 100], std::uint8_t(4 * 31 + 100 * 7));
}

TEST(Cifar10, WrongLengthSaysExpectedAndFound) {
  CifarImages images;
  Bytes bytes = records(2);
  bytes.pop_back();
  EXPECT_THAT(message_of<DataError>([&] { parse_cifar10(bytes, 2, "b.bin", images); }),
              HasSubstr("b.bin: truncated: expected 6146 bytes (2 records of 3073), found 6145"));
  bytes.resize(6147);
  EXPECT_THAT(message_of<DataError>([&] { parse_cifar10(bytes, 2, "b.bin", images); }),
              HasSubstr("b.bin: too long: expected 6146"));
  EXPECT_TRUE(images.labels.empty());
}

TEST(Cifar10, LabelAboveNineLeavesNothingBehind) {
  CifarImages images;
  Bytes bytes = records(2);
  bytes[kCifarRecordBytes] = 77;
  EXPECT_THAT(message_of<DataError>([&] { parse_cifar10(bytes, 2, "b.bin", images); }),
              HasSubstr("b.bin: label of record 1 is 77: expected 0 to 9"));
  EXPECT_TRUE(images.labels.empty() && images.pixels.empty());
}

TEST(Cifar10, OpensFiveFilesInOrder) {
  TemporaryFolder folder;
  const CifarFiles files{.folder = folder.path(), .records_per_file = 2};
  EXPECT_EQ(
      message_of<DataError>([&] { open_cifar10(files, CifarPart::train); }),
      (folder.path() / "data_batch_1.bin").string() + ": not found; run: convoy data get cifar10");
  for (std::size_t i = 0; i < 5; ++i)
    test::write_bytes(folder.path() / fmt::format("data_batch_{}.bin", i + 1), records(2, 2 * i));
  test::write_bytes(folder.path() / "test_batch.bin", records(2, 5));
  const auto train = open_cifar10(files, CifarPart::train);
  const auto test = open_cifar10(files, CifarPart::test);
  ASSERT_EQ(train->size(), 10u);
  EXPECT_EQ(test->size(), 2u);
  EXPECT_EQ(train->shape(), (Shape{3, 32, 32}));
  Bytes image(kCifarPixels);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(train->label(i), int(i));
    train->read(i, image);
    EXPECT_EQ(image[5], std::uint8_t(i * 31 + 35));
  }
}

TEST(CifarPng, RowsBecomeRecords) {
  Bytes pixels(2 * kCifarPixels);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::uint8_t(i * 13 >> 3);
  const Bytes picture = test::png(1024, 2, pixels, PNG_FORMAT_RGB);
  const Bytes labels = parse_cifar_labels(test::to_bytes("[4, 9]"), "l");
  const Bytes result = cifar_records(picture, labels, "p");
  ASSERT_EQ(result.size(), 2 * kCifarRecordBytes);
  EXPECT_EQ(result[0], 4);
  EXPECT_EQ(result[kCifarRecordBytes], 9);
  for (std::size_t c = 0; c < 3; ++c)
    EXPECT_EQ(result[kCifarRecordBytes + 1 + c * 1024 + 700], pixels[kCifarPixels + 3 * 700 + c]);
  EXPECT_THAT(message_of<DataError>([&] { cifar_records(picture, Bytes{1}, "p.png"); }),
              HasSubstr("p.png: expected 1024x1"));
}

TEST(CifarPng, BadLabels) {
  for (const char* text : {"", "{}", "[1, 10]", "[1, -1]", "[1.5]", "[\"1\"]", "[1"})
    EXPECT_THROW(parse_cifar_labels(test::to_bytes(text), "l"), DataError) << text;
}

}  // namespace
}  // namespace convoy
