#include "data/decode.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "data/test_files.h"

namespace convoy {
namespace {

using test::Bytes;
using test::message_of;
using ::testing::HasSubstr;

void expect_colour(const Image& image, const std::vector<int>& colour, int tolerance) {
  ASSERT_EQ(image.channels, int(colour.size()));
  ASSERT_EQ(image.pixels.size(), std::size_t(image.width) * image.height * colour.size());
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    ASSERT_NEAR(image.pixels[i], colour[i % colour.size()], tolerance) << i;
}

TEST(Decode, Jpegs) {
  const Bytes red = test::solid(20, 10, {200, 30, 60});
  for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
    const Image image = decode_image(test::jpeg(20, 10, red, TJPF_RGB, flags), "x");
    EXPECT_EQ(image.width, 20);
    EXPECT_EQ(image.height, 10);
    expect_colour(image, {200, 30, 60}, 4);
  }
  expect_colour(decode_image(test::jpeg(9, 7, test::solid(9, 7, {90}), TJPF_GRAY), "x"), {90}, 2);
  // Inverted inks: no cyan, all magenta, half the yellow, a fifth of black.
  const Bytes inks = test::solid(16, 16, {255, 0, 128, 204});
  expect_colour(decode_image(test::jpeg(16, 16, inks, TJPF_CMYK), "x"), {204, 0, 102}, 5);
}

TEST(Decode, JpegMayBeDecodedSmaller) {
  const Bytes file = test::jpeg(160, 80, test::solid(160, 80, {10, 120, 250}), TJPF_RGB);
  const auto width = [&](ImageSize enough) { return decode_image(file, "x", enough).width; };
  EXPECT_EQ(width({}), 160);
  EXPECT_EQ(width({80, 40}), 80);
  EXPECT_EQ(width({81, 40}), 160);
  EXPECT_EQ(width({1, 1}), 20);
  expect_colour(decode_image(file, "x", {30, 15}), {10, 120, 250}, 4);
}

TEST(Decode, Pngs) {
  const auto decoded = [](const Bytes& pixel, std::uint32_t format) {
    return decode_image(test::png(5, 4, test::solid(5, 4, pixel), format), "x");
  };
  expect_colour(decoded({1, 2, 3}, PNG_FORMAT_RGB), {1, 2, 3}, 0);
  expect_colour(decoded({77}, PNG_FORMAT_GRAY), {77}, 0);
  expect_colour(decoded({10, 20, 30, 255}, PNG_FORMAT_RGBA), {10, 20, 30}, 0);
  expect_colour(decoded({10, 20, 30, 0}, PNG_FORMAT_RGBA), {255, 255, 255}, 0);
  expect_colour(decoded({50, 255}, PNG_FORMAT_GA), {50}, 0);
  const Bytes palette = {0, 0, 0, 9, 8, 7};
  expect_colour(
      decode_image(test::png(5, 4, test::solid(5, 4, {1}), PNG_FORMAT_RGB_COLORMAP, palette), "x"),
      {9, 8, 7}, 0);
  expect_colour(decoded({0xff, 0xff, 0, 0, 0xff, 0xff}, PNG_FORMAT_LINEAR_RGB), {255, 0, 255}, 0);
  expect_colour(decoded({0xff, 0xff}, PNG_FORMAT_LINEAR_Y), {255}, 0);
}

TEST(Decode, EveryCutFileIsAnErrorThatNamesIt) {
  Bytes pixels(40 * 40 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::uint8_t(i * 2654435761u >> 24);
  for (const Bytes& file : {test::jpeg(40, 40, pixels, TJPF_RGB),
                            test::jpeg(40, 40, pixels, TJPF_RGB, TJFLAG_PROGRESSIVE),
                            test::png(40, 40, pixels, PNG_FORMAT_RGB)})
    for (std::size_t size = 0; size + 20 < file.size(); size += 37)
      EXPECT_THAT(
          message_of<DataError>([&] { decode_image(std::span(file).first(size), "cut.file"); }),
          ::testing::StartsWith("cut.file: "))
          << size << " of " << file.size();
}

TEST(Decode, ForeignBytes) {
  EXPECT_EQ(
      message_of<DataError>([] { decode_image(test::to_bytes("GIF89a, not ours"), "a.gif"); }),
      "a.gif: neither a JPEG nor a PNG file");
  EXPECT_THROW(read_image_size({}, "empty"), DataError);
}

TEST(Decode, BombsAreRefusedByTheirHeader) {
  Bytes file = test::png(8, 8, test::solid(8, 8, {1}), PNG_FORMAT_GRAY);
  const std::uint32_t side = 30000;  // each side is allowed, both together are not
  for (const std::size_t at : {16, 20})
    for (std::size_t i = 0; i < 4; ++i) file[at + i] = std::uint8_t(side >> (24 - 8 * i));
  const std::uint32_t crc = std::uint32_t(crc32(crc32(0, nullptr, 0), file.data() + 12, 17));
  for (std::size_t i = 0; i < 4; ++i) file[29 + i] = std::uint8_t(crc >> (24 - 8 * i));
  EXPECT_THAT(message_of<DataError>([&] { decode_image(file, "bomb.png"); }),
              HasSubstr("bomb.png: 30000x30000 pixels"));
  EXPECT_THROW(read_image_size(file, "bomb.png"), DataError);
}

TEST(Resize, KeepsAConstantAndARamp) {
  const Image grey{50, 30, 1, test::solid(50, 30, {131})};
  for (const ImageSize size : {ImageSize{7, 5}, ImageSize{120, 90}, ImageSize{50, 1}})
    expect_colour(resize(grey, size), {131}, 1);
  Image ramp{100, 4, 1, {}};
  for (int i = 0; i < 400; ++i) ramp.pixels.push_back(std::uint8_t(2 * (i % 100)));
  const Image half = resize(ramp, {50, 4});
  for (int x = 2; x < 48; ++x) EXPECT_NEAR(half.pixels[std::size_t(x)], 4 * x + 1, 1) << x;
}

TEST(Resize, ShrinkingAveragesInsteadOfPicking) {
  Image stripes{64, 2, 1, {}};
  for (int i = 0; i < 128; ++i) stripes.pixels.push_back(i % 2 ? 255 : 0);
  for (const std::uint8_t value : resize(stripes, {8, 2}).pixels) EXPECT_NEAR(value, 128, 12);
}

TEST(Fit, TakesTheCentreAndConvertsColours) {
  // Left third red, middle third green, right third blue.
  Image image{90, 30, 3, {}};
  for (int i = 0; i < 90 * 30; ++i)
    for (int c = 0; c < 3; ++c) image.pixels.push_back(i % 90 / 30 == c ? 255 : 0);
  Bytes out(3 * 15 * 15);
  fit_image(image, {3, 15, 15}, out);
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i / 225 == 1 ? 255 : 0) << i;
  Bytes grey(15 * 15);
  fit_image(image, {1, 15, 15}, grey);
  EXPECT_EQ(grey[0], 150);  // 0.587 * 255
  const Image one{4, 4, 1, test::solid(4, 4, {42})};
  fit_image(one, {3, 15, 15}, out);
  EXPECT_EQ(out, Bytes(out.size(), 42));
}

TEST(Fit, LargeShapesLeaveAMargin) {
  EXPECT_EQ(covering_size({500, 400}, {3, 224, 224}).height, 256);
  EXPECT_EQ(covering_size({500, 400}, {3, 224, 224}).width, 320);
  EXPECT_EQ(covering_size({500, 400}, {3, 32, 32}).height, 32);
}

TEST(Fit, ThinImagesCostNoMoreThanTheShape) {
  const Image thin{1, 32768, 1, Bytes(32768, 9)};
  Bytes out(3 * 224 * 224);
  fit_image(thin, {3, 224, 224}, out);
  EXPECT_EQ(out, Bytes(out.size(), 9));
}

}  // namespace
}  // namespace convoy
