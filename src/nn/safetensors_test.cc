#include "nn/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/error.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

class Safetensors : public testing::Test {
 protected:
  Safetensors() {
    folder_ = fs::path(testing::TempDir()) /
              fmt::format("convoy-safetensors-{}-{}", ::getpid(),
                          testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
    path_ = folder_ / "x.safetensors";
  }
  ~Safetensors() override { fs::remove_all(folder_); }

  // A file with this header text and `data_bytes` of data.
  void write_file(std::string_view json, std::size_t data_bytes) {
    write_file(json, data_bytes, json.size());
  }
  void write_file(std::string_view json, std::size_t data_bytes, std::uint64_t length) {
    std::ofstream file(path_, std::ios::binary);
    char start[8];
    std::memcpy(start, &length, 8);
    file.write(start, 8);
    file << json << std::string(data_bytes, '\0');
  }

  // Opening is refused with one line that names the file and holds `text`.
  void refuses(const std::string& text) {
    EXPECT_THAT([&] { SafetensorsFile file(path_); },
                ThrowsMessage<DataError>(AllOf(HasSubstr(path_.string() + ": "), HasSubstr(text),
                                               Not(HasSubstr("\n")))));
  }
  void refuses(std::string_view json, std::size_t data_bytes, const std::string& text) {
    SCOPED_TRACE(json.substr(0, 200));
    write_file(json, data_bytes);
    refuses(text);
  }

  fs::path folder_, path_;
};

TEST_F(Safetensors, WhatIsWrittenIsRead) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::int64_t b = 42;
  const std::vector<TensorSpec> specs = {{.name = "a \"quoted\" \u00e9", .dims = {2, 3}},
                                         {.name = "b", .dtype = "I64", .dims = {}},
                                         {.name = "empty", .dims = {0, 7}}};
  SafetensorsWriter writer(path_, specs, {{"model", "resnet18"}, {"config", "{\"a\":\n\"\\b\"}"}});
  writer.write(std::span<const float>(a));
  writer.write(std::as_bytes(std::span(&b, 1)));
  writer.commit();

  const SafetensorsFile file(path_);
  EXPECT_EQ(file.metadata().at("model"), "resnet18");
  EXPECT_EQ(file.metadata().at("config"), "{\"a\":\n\"\\b\"}");
  ASSERT_EQ(file.tensors().size(), 3u);
  const StoredTensor* tensor = file.find("a \"quoted\" \u00e9");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->dims, (std::vector<std::int64_t>{2, 3}));
  std::vector<float> floats(6);
  file.read(*tensor, floats);
  EXPECT_EQ(floats, a);
  std::int64_t number = 0;
  file.read(*file.find("b"), std::as_writable_bytes(std::span(&number, 1)));
  EXPECT_EQ(number, 42);
  EXPECT_EQ(file.find("empty")->bytes(), 0u);
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST_F(Safetensors, DataAreAligned) {
  for (int letters = 1; letters < 70; ++letters) {
    const std::vector<TensorSpec> specs = {{.name = std::string(letters, 'x'), .dims = {1}}};
    EXPECT_EQ(format_header(specs, {}, "file").size() % 64, 0u);
  }
}

TEST_F(Safetensors, UncommittedFileIsNotThere) {
  {
    const std::vector<TensorSpec> specs = {{.name = "a", .dims = {1}}};
    SafetensorsWriter writer(path_, specs, {});
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Safetensors, FileOfTheReferenceImplementationIsRead) {
  // No metadata, fields in another order, padding of spaces.
  write_file(R"({"w":{"shape":[2],"data_offsets":[0,8],"dtype":"F32"}}   )", 8);
  const SafetensorsFile file(path_);
  EXPECT_TRUE(file.metadata().empty());
  EXPECT_EQ(file.tensors().size(), 1u);
  write_file("{}", 0);
  EXPECT_TRUE(SafetensorsFile(path_).tensors().empty());
}

TEST_F(Safetensors, OtherTypesAreNotReadAsFloats) {
  write_file(R"({"w":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}})", 8);
  const SafetensorsFile file(path_);
  std::vector<float> floats(2);
  EXPECT_THAT([&] { file.read(*file.find("w"), floats); },
              ThrowsMessage<DataError>(HasSubstr("is F16, not F32")));
}

TEST_F(Safetensors, RefusesWhatIsNoFile) {
  refuses("cannot open");
  fs::create_directory(path_);
  refuses("is not a file");
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  refuses("is not a file");
}

TEST_F(Safetensors, RefusesWrongLengths) {
  std::ofstream(path_) << "";
  refuses("has 0 bytes");
  std::ofstream(path_) << "1234567";
  refuses("has 7 bytes");
  write_file("{}", 0, 3);
  refuses("announces a header of 3 bytes, but only 2 follow");
  write_file("{}", 0, 100'000'001);
  refuses("announces a header of 100000001 bytes, more than");
  write_file("{}", 0, ~std::uint64_t{0});
  refuses("announces a header of 18446744073709551615 bytes");
  write_file("{}", 0, 0);
  refuses("not valid JSON");
}

TEST_F(Safetensors, RefusesOtherJson) {
  refuses("", 0, "not valid JSON");
  refuses("{", 0, "not valid JSON at its byte");
  refuses("{}x", 0, "not valid JSON");
  refuses("\xff\xfe", 0, "not valid JSON");
  refuses("{\"\xff\":{}}", 0, "not valid JSON");
  refuses("[]", 0, "the header is a list instead of an object");
  refuses("null", 0, "the header is null");
  refuses("3", 0, "the header is a number");
  refuses(std::string(1'000'000, '['), 0, "the header is a list");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  refuses(deep, 0, "unknown field 'a'");
  refuses(R"({"w":{"shape":)" + std::string(100'000, '['), 0, "shape holds a list");
}

TEST_F(Safetensors, RefusesWrongTypes) {
  refuses(R"({"w":3})", 0, "tensor 'w' is a number instead of an object");
  refuses(R"({"w":[]})", 0, "tensor 'w' is a list instead of an object");
  refuses(R"({"w":{}})", 0, "tensor 'w' has no dtype");
  refuses(R"({"w":{"dtype":"F32","data_offsets":[0,0]}})", 0, "has no shape");
  refuses(R"({"w":{"dtype":"F32","shape":[]}})", 0, "has no data_offsets");
  refuses(R"({"w":{"dtype":7}})", 0, "dtype is a number instead of a string");
  refuses(R"({"w":{"dtype":["F32"]}})", 0, "dtype is a list instead of a string");
  refuses(R"({"w":{"dtype":"F33"}})", 0, "unknown dtype 'F33'");
  refuses(R"({"w":{"shape":"2"}})", 0, "shape is a string instead of a list");
  refuses(R"({"w":{"shape":2}})", 0, "shape is a number instead of a list");
  refuses(R"({"w":{"shape":{}}})", 0, "shape is an object instead of a list");
  refuses(R"({"w":{"shape":[2.5]}})", 0, "shape holds the number 2.5 instead of");
  refuses(R"({"w":{"shape":["2"]}})", 0, "shape holds a string");
  refuses(R"({"w":{"shape":[null]}})", 0, "shape holds null");
  refuses(R"({"w":{"shape":[true]}})", 0, "shape holds true or false");
  refuses(R"({"w":{"shape":[-1]}})", 0, "-1 in shape is negative");
  refuses(R"({"w":{"shape":[1e999]}})", 0, "not valid JSON");
  refuses(R"({"w":{"shape":[9223372036854775808]}})", 0, "too large");
  refuses(R"({"w":{"shape":[99999999999999999999]}})", 0, "shape holds the number");
  refuses(R"({"w":{"data_offsets":[0]}})", 0, "has no dtype");
  refuses(R"({"w":{"dtype":"F32","shape":[],"data_offsets":[0]}})", 0, "has 1 numbers, not two");
  refuses(R"({"w":{"data_offsets":[0,4,8]}})", 0, "more than two numbers");
  refuses(R"({"w":{"data_offsets":[-4,0]}})", 0, "-4 in data_offsets is negative");
  refuses(R"({"w":{"colour":"red"}})", 0, "unknown field 'colour'");
  refuses(R"({"__metadata__":{"a":1}})", 0, "metadata 'a' is a number instead of a string");
  refuses(R"({"__metadata__":{"a":{}}})", 0, "metadata 'a' is an object instead of a string");
  refuses(R"({"__metadata__":"a"})", 0, "'__metadata__' is a string instead of an object");
}

TEST_F(Safetensors, RefusesDuplicates) {
  const std::string w = R"("w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  refuses("{" + w + "," + w + "}", 4, "tensor 'w' is there twice");
  refuses(R"({"w":{"dtype":"F32","dtype":"F32"}})", 0, "has the field 'dtype' twice");
  refuses(R"({"__metadata__":{"a":"1","a":"2"}})", 0, "metadata 'a' is there twice");
}

TEST_F(Safetensors, RefusesWrongRanges) {
  const auto tensor = [](const char* name, const char* shape, const char* offsets) {
    return fmt::format(R"("{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{}]}})", name, shape,
                       offsets);
  };
  refuses("{" + tensor("w", "1", "4,0") + "}", 4, "ends at byte 0, before it begins at 4");
  refuses("{" + tensor("w", "2", "0,8") + "}", 7,
          "ends at byte 8 of the data, but the file has only 7");
  refuses("{" + tensor("w", "1", "9223372036854775803,9223372036854775807") + "}", 4,
          "but the file has only 4");
  refuses("{" + tensor("w", "2", "0,4") + "}", 4, "needs 8 bytes for its shape");
  refuses("{" + tensor("w", "4294967296,4294967296", "0,0") + "}", 0, "more bytes than any file");
  refuses("{" + tensor("w", "4611686018427387904,4", "0,0") + "}", 0, "more bytes than any file");
  refuses("{" + tensor("a", "2", "0,8") + "," + tensor("b", "2", "4,12") + "}", 12,
          "tensor 'b' begins at byte 4 of the data, inside another tensor");
  refuses("{" + tensor("a", "1", "0,4") + "," + tensor("b", "1", "8,12") + "}", 12,
          "after 4 bytes that no tensor has");
  refuses("{" + tensor("w", "1", "0,4") + "}", 6, "2 bytes follow the last tensor");
}

TEST_F(Safetensors, MessagesStayOnOneShortLine) {
  refuses(R"({"line\nbreak\u0000":3})", 0, "tensor 'line?break?' is");
  write_file("{\"" + std::string(1'000'000, 'x') + "\":3}", 0);
  try {
    SafetensorsFile file(path_);
    FAIL() << "a number was taken for a tensor";
  } catch (const DataError& error) {
    EXPECT_LT(std::strlen(error.what()), 1000u);
  }
}

TEST_F(Safetensors, EveryTruncationIsRefused) {
  const std::vector<TensorSpec> specs = {{.name = "a", .dims = {3}}, {.name = "b", .dims = {2}}};
  const std::vector<float> data(5, 1.0f);
  SafetensorsWriter writer(path_, specs, {{"k", "v"}});
  writer.write(std::span<const float>(data));
  writer.commit();
  for (auto size = std::int64_t(fs::file_size(path_)) - 1; size >= 0; --size) {
    fs::resize_file(path_, std::uintmax_t(size));
    EXPECT_THROW(SafetensorsFile file(path_), DataError) << size;
  }
}

}  // namespace
}  // namespace convoy
