// What every set promises of its parts: put together they are the whole, and a part is read without
// reading much else.
#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "base/error.h"
#include "data/child.h"
#include "data/cifar10.h"
#include "data/image_folder.h"
#include "data/mnist.h"
#include "data/open.h"
#include "data/synthetic.h"
#include "data/test_files.h"

namespace convoy {
namespace {

using test::Bytes;
using test::message_of;
using ::testing::HasSubstr;

// Opens files as usual, and counts what is read of them.
class CountingBytes final : public ByteSource {
 public:
  CountingBytes(const std::filesystem::path& path, std::size_t& bytes, std::size_t& calls)
      : inner_(open_file_bytes(path)), bytes_(bytes), calls_(++calls) {}
  std::size_t size() const override { return inner_->size(); }
  void read(std::size_t offset, std::span<std::uint8_t> bytes) override {
    inner_->read(offset, bytes);
    bytes_ += bytes.size();
    ++calls_;
  }

 private:
  std::unique_ptr<ByteSource> inner_;
  std::size_t &bytes_, &calls_;
};

struct Count {
  std::size_t bytes = 0, calls = 0;
  OpenBytes opener() {
    return [this](const std::filesystem::path& path) {
      return std::make_unique<CountingBytes>(path, bytes, calls);
    };
  }
};

Bytes image_of(const Dataset& set, std::size_t index) {
  Bytes image(set.shape().count());
  set.read(index, image);
  return image;
}

// What is logged meanwhile.
class Log {
 public:
  Log() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  ~Log() { spdlog::set_default_logger(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

using Open = std::function<std::unique_ptr<Dataset>(const Cut&)>;

void expect_parts_make_the_whole(const Open& open) {
  const auto whole = open({});
  ASSERT_EQ(whole->first(), 0u);
  ASSERT_EQ(whole->whole_size(), whole->size());
  for (const std::size_t limit : {std::size_t{0}, std::size_t{5}, whole->size() + 9})
    for (const int parts : {1, 2, 3, 7}) {
      std::size_t next = 0;
      const std::size_t count = limit > 0 ? std::min(limit, whole->size()) : whole->size();
      for (int part = 0; part < parts; ++part) {
        const auto some = open({.limit = limit, .part = part, .parts = parts});
        EXPECT_EQ(some->first(), next);
        EXPECT_EQ(some->whole_size(), count);
        EXPECT_EQ(some->shape(), whole->shape());
        EXPECT_EQ(some->classes(), whole->classes());
        EXPECT_EQ(some->mean(), whole->mean());
        EXPECT_EQ(some->deviation(), whole->deviation());
        EXPECT_LE(some->size(), count / std::size_t(parts) + 1);
        for (std::size_t i = 0; i < some->size(); ++i, ++next) {
          ASSERT_EQ(some->label(i), whole->label(next)) << next;
          ASSERT_EQ(image_of(*some, i), image_of(*whole, next)) << next;
        }
      }
      EXPECT_EQ(next, count) << parts << " parts, limit " << limit;
    }
}

class MnistParts : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr std::size_t kCount = 203;
  void SetUp() override {
    Bytes pixels(kCount * 12), labels(kCount);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::uint8_t(i * 7 + i / 256);
    for (std::size_t i = 0; i < kCount; ++i) labels[i] = std::uint8_t(i * i % 10);
    write("train-images-idx3-ubyte", test::idx({kCount, 4, 3}, pixels));
    write("train-labels-idx1-ubyte", test::idx({kCount}, labels));
  }
  void write(const std::string& name, const Bytes& bytes) {
    test::write_bytes(folder_.path() / (name + GetParam()),
                      GetParam().empty() ? bytes : test::gzip(bytes));
  }
  std::unique_ptr<Dataset> open(const Cut& cut) {
    return open_mnist({.folder = folder_.path(), .open = count_.opener()}, MnistPart::train, cut);
  }
  const Log log_;
  TemporaryFolder folder_;
  Count count_;
};

TEST_P(MnistParts, MakeTheWhole) {
  expect_parts_make_the_whole([&](const Cut& cut) { return open(cut); });
}

TEST_P(MnistParts, CallsAreTheSameForEveryPart) {
  open({.part = 0, .parts = 300});
  const std::size_t calls = count_.calls;
  for (const int part : {1, 200, 299}) {  // the last has no sample
    count_ = {};
    open({.part = part, .parts = 300});
    EXPECT_EQ(count_.calls, calls);
  }
}

TEST_P(MnistParts, ALabelIsNamedByItsPlaceInTheFile) {
  Bytes labels(kCount, 1);
  labels[150] = 10;
  write("train-labels-idx1-ubyte", test::idx({kCount}, labels));
  EXPECT_THAT(message_of<DataError>([&] { open({.part = 1, .parts = 2}); }),
              HasSubstr("label 150 is 10: expected 0 to 9"));
}

INSTANTIATE_TEST_SUITE_P(Files, MnistParts, ::testing::Values("", ".gz"), [](const auto& tested) {
  return tested.param.empty() ? "plain" : "gzipped";
});

class MnistBytes : public MnistParts {};

TEST_P(MnistBytes, AWorkerReadsItsShare) {
  open({});
  const std::size_t all = count_.bytes;
  for (const int parts : {2, 3, 7}) {
    count_ = {};
    open({.part = parts - 1, .parts = parts});
    EXPECT_NEAR(double(count_.bytes), double(all) / parts, 50) << parts;
  }
}

TEST_P(MnistBytes, WrongFilesAreNamedByEveryPart) {
  const Cut last{.part = 2, .parts = 3};
  const std::string name = (folder_.path() / "train-images-idx3-ubyte").string();
  write("train-images-idx3-ubyte", test::idx({kCount, 4, 3}, Bytes(kCount * 12 - 1)));
  EXPECT_EQ(message_of<DataError>([&] { open(last); }),
            name + ": truncated: expected 2452 bytes, found 2451");
  write("train-images-idx3-ubyte", test::idx({kCount}, Bytes(kCount)));
  EXPECT_THAT(message_of<DataError>([&] { open(last); }),
              HasSubstr(name + ": wrong magic number: expected 0x00000803, found 0x00000801"));
  write("train-images-idx3-ubyte", {0, 0, 8});
  EXPECT_EQ(message_of<DataError>([&] { open(last); }),
            name + ": truncated: expected at least 16 bytes of header, found 3");
  write("train-images-idx3-ubyte", {});
  EXPECT_THAT(message_of<DataError>([&] { open(last); }), HasSubstr("found 0"));
}

INSTANTIATE_TEST_SUITE_P(Files, MnistBytes, ::testing::Values(""),
                         [](const auto&) { return "plain"; });

TEST(Parts, OfAGzippedFileAreNoSaving) {
  TemporaryFolder folder;
  test::write_bytes(folder.path() / "t10k-images-idx3-ubyte.gz",
                    test::gzip(test::idx({2, 1, 1}, {1, 2})));
  test::write_bytes(folder.path() / "t10k-labels-idx1-ubyte.gz",
                    test::gzip(test::idx({2}, {3, 4})));
  const Log log;
  open_mnist({.folder = folder.path()}, MnistPart::test);
  EXPECT_EQ(log.text(), "");
  open_mnist({.folder = folder.path()}, MnistPart::test, {.part = 1, .parts = 2});
  EXPECT_EQ(log.text(), "");  // once for all workers is enough
  const auto part = open_mnist({.folder = folder.path()}, MnistPart::test, {.part = 0, .parts = 2});
  EXPECT_EQ(part->label(0), 3);
  EXPECT_THAT(log.text(), HasSubstr("t10k-images-idx3-ubyte.gz: gzipped, so every worker reads"));
}

class CifarParts : public ::testing::Test {
 protected:
  static constexpr std::size_t kPerFile = 9;
  void SetUp() override {
    for (std::size_t file = 0; file < 5; ++file) write(file, records(file));
  }
  static Bytes records(std::size_t file) {
    Bytes bytes;
    for (std::size_t i = file * kPerFile; i < (file + 1) * kPerFile; ++i) {
      bytes.push_back(std::uint8_t(i * 3 % 10));
      for (std::size_t p = 0; p < kCifarPixels; ++p) bytes.push_back(std::uint8_t(i * 31 + p * 7));
    }
    return bytes;
  }
  void write(std::size_t file, const Bytes& bytes) {
    test::write_bytes(folder_.path() / fmt::format("data_batch_{}.bin", file + 1), bytes);
  }
  std::unique_ptr<Dataset> open(const Cut& cut) {
    return open_cifar10(
        {.folder = folder_.path(), .records_per_file = kPerFile, .open = count_.opener()},
        CifarPart::train, cut);
  }
  TemporaryFolder folder_;
  Count count_;
};

TEST_F(CifarParts, MakeTheWhole) {
  expect_parts_make_the_whole([&](const Cut& cut) { return open(cut); });
}

TEST_F(CifarParts, AWorkerReadsItsShareByTheSameCalls) {
  for (const int parts : {1, 2, 3, 7})
    for (int part = 0; part < parts; ++part) {
      count_ = {};
      const std::size_t size = open({.part = part, .parts = parts})->size();
      EXPECT_EQ(count_.bytes, size * kCifarRecordBytes);
      EXPECT_EQ(count_.calls, 10u);  // five files opened, five reads
    }
}

TEST_F(CifarParts, WrongFilesAreNamedByEveryPart) {
  Bytes bytes = records(3);
  bytes[2 * kCifarRecordBytes] = 77;
  write(3, bytes);
  EXPECT_NE(open({.part = 0, .parts = 2}), nullptr);
  EXPECT_THAT(message_of<DataError>([&] { open({.part = 1, .parts = 2}); }),
              HasSubstr("data_batch_4.bin: label of record 2 is 77: expected 0 to 9"));
  bytes.pop_back();
  write(3, bytes);
  for (const int part : {0, 1})
    EXPECT_THAT(message_of<DataError>([&] { open({.part = part, .parts = 2}); }),
                HasSubstr("data_batch_4.bin: truncated: expected 27657 bytes"));
  std::filesystem::remove(folder_.path() / "data_batch_4.bin");
  EXPECT_THAT(message_of<DataError>([&] { open({.part = 0, .parts = 2}); }),
              HasSubstr("data_batch_4.bin: not found; run: convoy data get cifar10"));
}

class FolderParts : public ::testing::Test {
 protected:
  static constexpr Shape kShape{1, 4, 4};
  void SetUp() override {
    for (int i = 0; i < 7; ++i) write("cat", i, std::uint8_t(10 + i));
    for (int i = 0; i < 3; ++i) write("dog", i, std::uint8_t(100 + i));
    for (int i = 0; i < 5; ++i) write("eel", i, std::uint8_t(200 + i));
  }
  std::filesystem::path file(const std::string& name, int i) const {
    return folder_.path() / name / fmt::format("{}.png", i);
  }
  void write(const std::string& name, int i, std::uint8_t level) {
    test::write_bytes(file(name, i), test::png(4, 4, test::solid(4, 4, {level}), PNG_FORMAT_GRAY));
  }
  std::unique_ptr<ImageFolder> open(const Cut& cut, std::uintmax_t decode = kDecodeAtOpenBytes) {
    return std::make_unique<ImageFolder>(
        folder_.path(),
        ImageFolderOptions{.shape = kShape, .decode_at_open_bytes = decode, .cut = cut});
  }
  TemporaryFolder folder_;
};

TEST_F(FolderParts, MakeTheWhole) {
  expect_parts_make_the_whole([&](const Cut& cut) { return open(cut); });
}

TEST_F(FolderParts, OnlyOwnFilesAreLookedInto) {
  // The order is cat 0, dog 0, eel 0, cat 1, ...: the first half has the files 0 and 1 of each, and
  // cat 2 and dog 2. Everything else is broken.
  for (const std::string name : {"cat", "eel"})
    for (int i = name == "cat" ? 3 : 2; i < (name == "cat" ? 7 : 5); ++i)
      test::write_bytes(file(name, i), test::to_bytes("broken"));
  const Log log;
  for (const std::uintmax_t decode : {std::uintmax_t{0}, kDecodeAtOpenBytes}) {
    const auto half = open({.part = 0, .parts = 2}, decode);
    ASSERT_EQ(half->size(), 8u);
    EXPECT_EQ(half->replaced(), 0u);
    EXPECT_EQ(log.text(), "");
  }
  EXPECT_EQ(open({.part = 1, .parts = 2})->replaced(), 7u);
}

TEST_F(FolderParts, BrokenFilesAreReplacedByTheSameImagesInEveryCut) {
  const Log log;
  test::write_bytes(file("cat", 5), test::to_bytes("broken"));
  test::write_bytes(file("cat", 6), test::to_bytes("broken"));
  test::write_bytes(file("dog", 1), test::to_bytes("broken"));
  for (const int parts : {2, 3, 7}) {
    std::vector<std::uint8_t> levels;
    for (int part = 0; part < parts; ++part) {
      const auto some = open({.part = part, .parts = parts});
      EXPECT_EQ(some->whole_size(), 15u);
      EXPECT_EQ(some->skipped(), 0u);
      for (std::size_t i = 0; i < some->size(); ++i) levels.push_back(image_of(*some, i)[0]);
    }
    EXPECT_EQ(levels, (Bytes{10, 100, 200, 11, 102, 201, 12, 102, 202, 13, 203, 14, 204, 10, 10}))
        << parts;
  }
  EXPECT_EQ(open({})->size(), 12u);  // whole, they are left out
}

TEST(SyntheticParts, MakeTheWhole) {
  const SyntheticSpec spec = parse_synthetic("synthetic:2x3x3:4:31");
  expect_parts_make_the_whole(
      [&](const Cut& cut) { return make_synthetic(spec, SyntheticPart::train, 3, cut); });
}

TEST(Open, PartsOfBothSets) {
  const DataSplit split = open_data({.name = "synthetic:1x2x2:5:100",
                                     .limit = 40,
                                     .train_part = {.index = 3, .of = 4},
                                     .test_part = {.index = 1, .of = 2}});
  EXPECT_EQ(split.train->size(), 10u);
  EXPECT_EQ(split.train->first(), 30u);
  EXPECT_EQ(split.train->whole_size(), 40u);
  EXPECT_EQ(split.test->size(), 12u);
  EXPECT_EQ(split.test->first(), 13u);
  EXPECT_EQ(split.test->whole_size(), 25u);
}

TEST(FileBytes, ReadsAnyPartAndNamesTheFile) {
  TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "some";
  test::write_bytes(path, {1, 2, 3, 4, 5});
  const auto source = open_file_bytes(path);
  EXPECT_EQ(source->size(), 5u);
  Bytes some(3);
  source->read(2, some);
  EXPECT_EQ(some, (Bytes{3, 4, 5}));
  source->read(5, {});
  EXPECT_EQ(message_of<DataError>([&] { source->read(3, some); }),
            path.string() + ": truncated: ends at byte 5 while it is read");
  EXPECT_THAT(message_of<DataError>([&] { open_file_bytes(folder.path() / "none"); }),
              HasSubstr("none: cannot open: No such file"));
  EXPECT_EQ(message_of<DataError>([&] { open_file_bytes(folder.path()); }),
            folder.path().string() + ": not a file");
}

}  // namespace
}  // namespace convoy
