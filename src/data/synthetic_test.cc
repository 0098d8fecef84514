#include "data/synthetic.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "data/open.h"
#include "data/test_files.h"

namespace convoy {
namespace {

using test::Bytes;
using test::message_of;
using ::testing::HasSubstr;

Bytes image_of(const Dataset& set, std::size_t index) {
  Bytes image(set.shape().count());
  set.read(index, image);
  return image;
}

TEST(Synthetic, ParsesItsName) {
  const SyntheticSpec spec = parse_synthetic("synthetic:3x8x9:7:100");
  EXPECT_EQ(spec.shape, (Shape{3, 8, 9}));
  EXPECT_EQ(spec.classes, 7);
  EXPECT_EQ(spec.train_count, 100u);
  EXPECT_EQ(spec.test_count, 25u);
  EXPECT_EQ(parse_synthetic("synthetic:3x8x9:7").train_count, 2048u);
  EXPECT_EQ(parse_synthetic("synthetic:3x8x9:7:1").test_count, 1u);
}

TEST(Synthetic, BadNamesAreConfigErrors) {
  for (const char* text :
       {"synthetic", "synthetic:", "synthetic:3x8x8", "synthetic:3x8:10", "synthetic:3x8x8:0",
        "synthetic:3x8x8:ten", "synthetic:3x8x8:10:0", "synthetic:3x8x8:10:-1",
        "synthetic:3x8x8:10:5:5", "synthetic:0x8x8:10", "synthetic:3x65536x65536:10",
        "synthetic:3x8x8:10:99999999999999999999", "synthetic:65536x1x1:1000000"})
    EXPECT_THROW(parse_synthetic(text), ConfigError) << text;
}

TEST(Synthetic, SameSeedSameBytes) {
  const SyntheticSpec spec = parse_synthetic("synthetic:2x9x6:5:40");
  const auto a = make_synthetic(spec, SyntheticPart::train, 3);
  const auto b = make_synthetic(spec, SyntheticPart::train, 3);
  const auto other = make_synthetic(spec, SyntheticPart::train, 4);
  const auto test = make_synthetic(spec, SyntheticPart::test, 3);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(image_of(*a, i), image_of(*b, i));
    EXPECT_NE(image_of(*a, i), image_of(*other, i));
    EXPECT_NE(image_of(*a, i), image_of(*test, i));
  }
  EXPECT_NE(image_of(*a, 0), image_of(*a, 5));  // one class, different noise
}

// A test image is nearest to the mean training image of its class: what "learnable" means.
TEST(Synthetic, ClassesCanBeTold) {
  const SyntheticSpec spec = parse_synthetic("synthetic:1x16x16:10:400");
  const auto train = make_synthetic(spec, SyntheticPart::train, 1);
  const auto test = make_synthetic(spec, SyntheticPart::test, 1);
  std::vector<std::vector<double>> means(10, std::vector<double>(256));
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < train->size(); ++i) {
    const Bytes image = image_of(*train, i);
    for (std::size_t p = 0; p < 256; ++p) {
      means[std::size_t(train->label(i))][p] += image[p] / 40.0;
      sum += image[p] / 255.0;
      squares += image[p] / 255.0 * image[p] / 255.0;
    }
  }
  int right = 0;
  for (std::size_t i = 0; i < test->size(); ++i) {
    const Bytes image = image_of(*test, i);
    std::vector<double> distances(10);
    for (std::size_t c = 0; c < 10; ++c)
      for (std::size_t p = 0; p < 256; ++p) distances[c] += std::pow(image[p] - means[c][p], 2);
    const auto best = std::min_element(distances.begin(), distances.end()) - distances.begin();
    right += best == test->label(i);
  }
  EXPECT_GE(right, 99);
  const double count = 400 * 256, mean = sum / count;
  EXPECT_NEAR(mean, train->mean()[0], 0.06);
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), train->deviation()[0], 0.06);
}

TEST(Synthetic, TinyShapes) {
  const auto set = make_synthetic(parse_synthetic("synthetic:1x1x1:2:4"), SyntheticPart::train, 1);
  EXPECT_EQ(image_of(*set, 3).size(), 1u);
}

TEST(Synthetic, ALimitTakesTheFirst) {
  const SyntheticSpec spec = parse_synthetic("synthetic:1x4x4:3:10");
  const auto whole = make_synthetic(spec, SyntheticPart::train, 1);
  const auto limited = make_synthetic(spec, SyntheticPart::train, 1, {.limit = 4});
  EXPECT_EQ(limited->size(), 4u);
  EXPECT_EQ(limited->whole_size(), 4u);
  EXPECT_EQ(limited->label(2), 2);
  EXPECT_EQ(image_of(*limited, 3), image_of(*whole, 3));
  EXPECT_EQ(make_synthetic(spec, SyntheticPart::train, 1, {.limit = 99})->size(), 10u);
}

TEST(Open, SyntheticWithLimit) {
  const DataSplit split = open_data({.name = "synthetic:3x4x4:10:100", .limit = 7});
  EXPECT_EQ(split.train->size(), 7u);
  EXPECT_EQ(split.test->size(), 25u);
}

TEST(Open, UnknownNameSaysTheNearestAndTheList) {
  const std::string text = message_of<ConfigError>([] { open_data({.name = "mnits"}); });
  EXPECT_THAT(
      text,
      HasSubstr("--data mnits: unknown data set; did you mean mnist? Known: mnist, fashion-mnist, "
                "cifar10, synthetic:"));
  EXPECT_THAT(message_of<ConfigError>([] { open_data({.name = "syntetic:3x4x4:10"}); }),
              HasSubstr("did you mean synthetic?"));
  EXPECT_THROW(open_data({.name = ""}), ConfigError);
  EXPECT_THROW(open_data({.name = "mnist:3"}), ConfigError);
}

TEST(Open, MissingSetsSayWhatToRun) {
  for (const std::string name : {"mnist", "fashion-mnist", "cifar10"})
    EXPECT_THAT(
        message_of<DataError>([&] { open_data({.name = name, .root = "/nowhere"}); }),
        ::testing::AllOf(HasSubstr("/nowhere/" + name), HasSubstr("run: convoy data get " + name)));
  EXPECT_THAT(message_of<DataError>([] { open_data({.name = "./no/such/folder"}); }),
              HasSubstr("./no/such/folder: not found"));
}

}  // namespace
}  // namespace convoy
