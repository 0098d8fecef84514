#include "data/idx.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "data/child.h"
#include "data/gzip.h"
#include "data/mnist.h"
#include "data/test_files.h"

namespace convoy {
namespace {

using test::Bytes;
using test::message_of;
using ::testing::HasSubstr;

TEST(Gzip, RoundTripAtTheBound) {
  Bytes bytes(100'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::uint8_t(i * i);
  const Bytes packed = test::gzip(bytes);
  EXPECT_TRUE(is_gzip(packed));
  EXPECT_EQ(gunzip(packed, bytes.size(), "x"), bytes);
  EXPECT_THAT(message_of<DataError>([&] { gunzip(packed, bytes.size() - 1, "x.gz"); }),
              HasSubstr("x.gz: decompresses to more than 99999 bytes"));
}

TEST(Gzip, EmptyContent) { EXPECT_EQ(gunzip(test::gzip({}), 10, "x"), Bytes{}); }

TEST(Gzip, BombStopsAtTheBound) {
  const Bytes packed = test::gzip(Bytes(50'000'000));
  EXPECT_LT(packed.size(), 100'000u);
  EXPECT_THROW(gunzip(packed, 1'000'000, "bomb"), DataError);
}

TEST(Gzip, CutAndDamagedStreamsAreErrors) {
  const Bytes packed = test::gzip(Bytes(1000, 7));
  for (std::size_t size = 0; size < packed.size(); ++size)
    EXPECT_THROW(gunzip(std::span(packed).first(size), 5000, "x"), DataError) << size;
  Bytes damaged = packed;
  damaged[packed.size() - 6] ^= 1;  // the checksum
  EXPECT_THROW(gunzip(damaged, 5000, "x"), DataError);
}

TEST(Idx, ReadsDimensionsAndValues) {
  const Bytes bytes = test::idx({2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const IdxView view = parse_idx(bytes, 3, "x");
  EXPECT_EQ(view.dimensions, (std::vector<std::uint32_t>{2, 3, 1}));
  EXPECT_EQ(Bytes(view.values.begin(), view.values.end()), (Bytes{1, 2, 3, 4, 5, 6}));
}

TEST(Idx, EveryWrongLengthIsNamed) {
  const Bytes whole = test::idx({2, 3}, {1, 2, 3, 4, 5, 6});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(message_of<DataError>([&] { parse_idx(std::span(whole).first(size), 2, "f"); }),
                HasSubstr(fmt::format("found {}", size)));
  EXPECT_EQ(message_of<DataError>([&] { parse_idx(std::span(whole).first(15), 2, "f"); }),
            "f: truncated: expected 18 bytes, found 15");
  Bytes longer = whole;
  longer.push_back(0);
  EXPECT_EQ(message_of<DataError>([&] { parse_idx(longer, 2, "f"); }),
            "f: too long: expected 18 bytes, found 19");
}

TEST(Idx, WrongMagicNumberSaysBoth) {
  const Bytes labels = test::idx({3}, {1, 2, 3});
  Bytes padded = labels;
  padded.resize(100);
  EXPECT_THAT(message_of<DataError>([&] { parse_idx(padded, 3, "f"); }),
              HasSubstr("f: wrong magic number: expected 0x00000803, found 0x00000801"));
}

TEST(Idx, HugeDimensionsDoNotOverflow) {
  EXPECT_THROW(parse_idx(test::idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, {}), 3, "f"), DataError);
  // 2^16 * 2^16 * 2^32 would wrap to zero in 64 bits.
  EXPECT_THROW(parse_idx(test::idx({1u << 31, 1u << 31, 4}, {}), 3, "f"), DataError);
}

class Mnist : public ::testing::Test {
 protected:
  void write(const std::string& name, const Bytes& bytes) {
    test::write_bytes(folder_.path() / name, bytes);
  }
  std::string error() {
    return message_of<DataError>([&] { open_mnist({.folder = folder_.path()}, MnistPart::train); });
  }
  TemporaryFolder folder_;
  const Bytes images_ = test::idx({2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Bytes labels_ = test::idx({2}, {9, 0});
};

TEST_F(Mnist, PlainAndGzippedAreTheSame) {
  for (const bool zipped : {false, true}) {
    const std::string end = zipped ? ".gz" : "";
    TemporaryFolder folder;
    test::write_bytes(folder.path() / ("t10k-images-idx3-ubyte" + end),
                      zipped ? test::gzip(images_) : images_);
    test::write_bytes(folder.path() / ("t10k-labels-idx1-ubyte" + end),
                      zipped ? test::gzip(labels_) : labels_);
    const auto set = open_mnist({.folder = folder.path()}, MnistPart::test);
    ASSERT_EQ(set->size(), 2u);
    EXPECT_EQ(set->shape(), (Shape{1, 2, 3}));
    EXPECT_EQ(set->classes(), 10);
    EXPECT_EQ(set->label(0), 9);
    Bytes image(6);
    set->read(1, image);
    EXPECT_EQ(image, (Bytes{7, 8, 9, 10, 11, 12}));
  }
}

TEST_F(Mnist, MissingFileSaysWhatToRun) {
  EXPECT_EQ(error(), (folder_.path() / "train-images-idx3-ubyte").string() +
                         ": not found; run: convoy data get mnist");
}

TEST_F(Mnist, LabelAboveNine) {
  write("train-images-idx3-ubyte", images_);
  write("train-labels-idx1-ubyte", test::idx({2}, {9, 10}));
  EXPECT_THAT(error(), HasSubstr("train-labels-idx1-ubyte: label 1 is 10: expected 0 to 9"));
}

TEST_F(Mnist, CountsDiffer) {
  write("train-images-idx3-ubyte", images_);
  write("train-labels-idx1-ubyte", test::idx({3}, {1, 2, 3}));
  EXPECT_THAT(error(), HasSubstr("train-labels-idx1-ubyte: 3 labels for the 2 images"));
}

TEST_F(Mnist, SwappedFiles) {
  write("train-images-idx3-ubyte", test::idx({20}, Bytes(20)));
  write("train-labels-idx1-ubyte", images_);
  EXPECT_THAT(error(), HasSubstr("wrong magic number"));
}

TEST_F(Mnist, EmptySetIsAnError) {
  write("train-images-idx3-ubyte", test::idx({0, 28, 28}, {}));
  write("train-labels-idx1-ubyte", test::idx({0}, {}));
  EXPECT_THAT(error(), HasSubstr("not a usable set"));
}

}  // namespace
}  // namespace convoy
