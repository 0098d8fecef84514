#include <gmock/gmock.h>

#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "measure/mllog.h"
#include "measure/tensorboard.h"
#include "measure/test_store.h"

namespace convoy {
namespace {

using nlohmann::json;

std::string content(const std::filesystem::path& path) {
  const auto bytes = read_file(path);
  return {bytes.begin(), bytes.end()};
}

// The check value of the algorithm's catalogue entry.
TEST(TensorBoard, Checksum) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

// Records are a length, its sum, the bytes and their sum, and nothing else.
TEST_F(StoreTest, TensorBoardFilesAreRecords) {
  TensorBoardFile file(folder_ / "tb");
  file.add(7, {{"train/loss", 0.5}, {"test/accuracy", 0.75}});
  std::string bytes = content(file.path());
  const auto masked = [](std::string_view text) {
    const std::uint32_t crc = crc32c(text);
    return (crc >> 15 | crc << 17) + 0xa282ead8;
  };
  std::vector<std::string> events;
  while (!bytes.empty()) {
    std::uint64_t length = 0;
    std::uint32_t sum = 0;
    std::memcpy(&length, bytes.data(), 8);
    std::memcpy(&sum, bytes.data() + 8, 4);
    EXPECT_EQ(sum, masked(bytes.substr(0, 8)));
    ASSERT_LE(16 + length, bytes.size());
    events.push_back(bytes.substr(12, length));
    std::memcpy(&sum, bytes.data() + 12 + length, 4);
    EXPECT_EQ(sum, masked(events.back()));
    bytes.erase(0, 16 + length);
  }
  ASSERT_EQ(events.size(), 2u);
  EXPECT_THAT(events[0], ::testing::HasSubstr("brain.Event:2"));
  // Field 5 (summary) of 36 bytes: value { tag: "train/loss" simple_value: 0.5 } ...
  const std::string loss =
      std::string("\x0a\x11\x0a\x0atrain/loss\x15", 15) + std::string("\0\0\0\x3f", 4);
  EXPECT_THAT(events[1], ::testing::HasSubstr(loss));
  EXPECT_THAT(events[1], ::testing::HasSubstr("test/accuracy"));
}

TEST_F(StoreTest, MlLogLinesAreJson) {
  MlLog log(folder_ / "deep/run.log");
  log.begin("epoch_start", {{"epoch_num", 1}});
  log.point("eval_accuracy", 0.5, {{"epoch_num", 1}});
  log.end("run_stop", {{"status", "success"}});
  std::istringstream lines(content(folder_ / "deep/run.log"));
  std::vector<json> events;
  for (std::string line; std::getline(lines, line);) {
    ASSERT_TRUE(line.starts_with(":::MLLOG ")) << line;
    events.push_back(json::parse(line.substr(9)));
    for (const char* name : {"namespace", "time_ms", "event_type", "key", "value", "metadata"})
      EXPECT_TRUE(events.back().contains(name)) << name;
  }
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].at("event_type"), "INTERVAL_START");
  EXPECT_TRUE(events[0].at("value").is_null());
  EXPECT_EQ(events[1].at("value"), 0.5);
  EXPECT_EQ(events[2].at("metadata").at("status"), "success");
}

TEST_F(StoreTest, LogsThatCannotBeWrittenSaySo) {
  EXPECT_THROW(MlLog("/proc/convoy/x"), DataError);
  EXPECT_THROW(TensorBoardFile("/proc/convoy"), DataError);
}

}  // namespace
}  // namespace convoy
