#include "data/image_folder.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "data/child.h"
#include "data/decode.h"
#include "data/test_files.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::message_of;
using ::testing::HasSubstr;

constexpr Shape kShape{3, 8, 8};

Bytes grey_jpeg(std::uint8_t level) {
  return test::jpeg(16, 16, test::solid(16, 16, {level}), TJPF_GRAY);
}
Bytes grey_png(std::uint8_t level) {
  return test::png(16, 16, test::solid(16, 16, {level}), PNG_FORMAT_GRAY);
}

// A PNG whose header and end are sound and whose pixels are not.
Bytes rotten_png() {
  Bytes file = grey_png(50);
  const Bytes mark = test::to_bytes("IDAT");
  const auto at = std::search(file.begin(), file.end(), mark.begin(), mark.end());
  EXPECT_NE(at, file.end());
  *(at + 8) ^= 0xff;
  return file;
}

class Folder : public ::testing::Test {
 protected:
  void write(const std::string& name, const Bytes& bytes) {
    test::write_bytes(folder_.path() / name, bytes);
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string error() {
    return message_of<DataError>([&] { open_image_folder(folder_.path(), kShape); });
  }
  static int level(const Dataset& set, std::size_t index) {
    Bytes image(kShape.count());
    set.read(index, image);
    return image[0];
  }
  TemporaryFolder folder_;
};

TEST_F(Folder, ClassesByNameAndSamplesInTurns) {
  write("train/dog/1.jpg", grey_jpeg(10));
  write("train/dog/2.JPEG", grey_jpeg(20));
  write("train/dog/3.png", grey_png(30));
  write("train/cat/a.png", grey_png(100));
  write("val/dog/x.png", grey_png(200));
  const ImageFolderSplit split = open_image_folder(folder_.path(), kShape);
  EXPECT_EQ(split.train->class_names(), (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(split.train->size(), 4u);
  std::vector<int> labels, levels;
  for (std::size_t i = 0; i < 4; ++i) {
    labels.push_back(split.train->label(i));
    levels.push_back(level(*split.train, i));
  }
  EXPECT_EQ(labels, (std::vector<int>{0, 1, 1, 1}));
  EXPECT_EQ(levels, (std::vector<int>{100, 10, 20, 30}));
  EXPECT_EQ(split.test->size(), 1u);
  EXPECT_EQ(split.test->classes(), 2);
  EXPECT_EQ(split.test->label(0), 1);
  EXPECT_EQ(split.train->skipped(), 0u);
}

TEST_F(Folder, BrokenAndForeignFilesAreSkippedAndCounted) {
  const Bytes whole = grey_jpeg(10);
  write("train/a/good.jpg", whole);
  write("train/a/really_a_png.jpg", grey_png(60));
  write("train/a/cut.jpg", Bytes(whole.begin(), whole.begin() + whole.size() / 2));
  write("train/a/empty.png", {});
  write("train/a/text.jpg", test::to_bytes("hello"));
  write("train/a/notes.txt", test::to_bytes("hello"));
  write("train/a/rotten.png", rotten_png());
  const ImageFolder small(folder_.path() / "train", {.shape = kShape});
  EXPECT_EQ(small.size(), 2u);
  EXPECT_EQ(small.skipped(), 5u);
  // A set that is too large to decode at once finds all of them but the one that is rotten inside.
  const ImageFolder large(folder_.path() / "train", {.shape = kShape, .decode_at_open_bytes = 0});
  EXPECT_EQ(large.size(), 3u);
  EXPECT_EQ(large.skipped(), 4u);
}

TEST_F(Folder, DamageFoundLaterIsReplacedByTheNextOfTheClass) {
  write("train/a/1.png", grey_png(10));
  write("train/a/2.png", rotten_png());
  write("train/a/3.png", rotten_png());
  write("train/b/1.png", grey_png(90));
  const ImageFolder set(folder_.path() / "train", {.shape = kShape, .decode_at_open_bytes = 0});
  ASSERT_EQ(set.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(level(set, i), set.label(i) == 0 ? 10 : 90) << i;
  EXPECT_EQ(set.replaced(), 2u);
  fs::remove(path("train/a/1.png"));
  EXPECT_THAT(message_of<DataError>([&] { level(set, 0); }),
              HasSubstr("no image of the class can be read any more"));
}

TEST_F(Folder, HeaderBeyondTheFirstPartIsFound) {
  Bytes file = grey_jpeg(40);
  Bytes comments;
  for (int i = 0; i < 3; ++i) {
    comments.insert(comments.end(), {0xff, 0xfe, 0xff, 0xff});
    comments.resize(comments.size() + 0xfffd, ' ');
  }
  file.insert(file.begin() + 2, comments.begin(), comments.end());
  write("train/a/1.jpg", file);
  const ImageFolder set(folder_.path() / "train", {.shape = kShape, .decode_at_open_bytes = 0});
  EXPECT_EQ(set.skipped(), 0u);
  EXPECT_NEAR(level(set, 0), 40, 1);
}

TEST_F(Folder, WhatIsMissingIsNamed) {
  EXPECT_THAT(error(), HasSubstr("no train folder"));
  fs::create_directories(folder_.path() / "train");
  EXPECT_THAT(error(), HasSubstr("no val or test folder"));
  fs::create_directories(folder_.path() / "test");
  EXPECT_THAT(error(), HasSubstr(path("train") + ": no class folders"));
  write("train/cat/1.png", grey_png(1));
  fs::create_directories(folder_.path() / "train/dog");
  EXPECT_THAT(error(), HasSubstr(path("train/dog") + ": class folder with no images"));
  write("train/dog/1.png", test::to_bytes("broken"));
  EXPECT_THAT(error(), HasSubstr(path("train/dog") + ": class folder with no usable image"));
  write("train/dog/2.png", grey_png(1));
  write("test/cow/1.png", grey_png(1));
  EXPECT_THAT(error(),
              HasSubstr(path("test/cow") + ": class cow has no folder among the training"));
}

TEST_F(Folder, GreyShapeAndUnsuitableChannels) {
  write("train/a/1.png", grey_png(5));
  const ImageFolder grey(folder_.path() / "train", {.shape = {1, 8, 8}});
  EXPECT_EQ(grey.mean().size(), 1u);
  EXPECT_EQ(grey.deviation().size(), 1u);
  EXPECT_THROW(ImageFolder(folder_.path() / "train", {.shape = {4, 8, 8}}), ConfigError);
}

}  // namespace
}  // namespace convoy
