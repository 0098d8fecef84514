#include "world/shm/segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "base/error.h"
#include "world/shm/ring_ends.h"
#include "world/shm/shm_test_support.h"

namespace convoy::shm {
namespace {

using testing::HasSubstr;

std::string refusal(int fd) {
  try {
    Segment::attach(fd);
  } catch (const TransportError& error) {
    return error.what();
  }
  return "";
}

// A plain file in memory with the first page of a segment and the length of it.
int forged(const Segment& segment, off_t at, std::uint32_t value) {
  const int fd = memfd_create("forged", MFD_CLOEXEC);
  std::vector<char> page(4096);
  EXPECT_EQ(pread(segment.fd(), page.data(), page.size(), 0), 4096);
  std::memcpy(page.data() + at, &value, sizeof value);
  EXPECT_EQ(ftruncate(fd, lseek(segment.fd(), 0, SEEK_END)), 0);
  EXPECT_EQ(pwrite(fd, page.data(), page.size(), 0), 4096);
  return fd;
}

TEST(SegmentTest, AttachedSegmentIsTheSameMemory) {
  Segment made = Segment::create(small_segment(3));
  Segment found = Segment::attach(dup(made.fd()));
  EXPECT_EQ(found.ranks(), 3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(found.region(rank).size(), kTestRegionBytes);
    EXPECT_EQ(made.region(rank)[kTestRegionBytes - 1], std::byte{0});
    made.region(rank)[kTestRegionBytes - 1] = std::byte(rank + 1);
    made.slot(rank).barriers = 10 + rank;
    for (int to = 0; to < 3; ++to) made.ring(rank, to).written = 100 * rank + to;
  }
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(found.region(rank)[kTestRegionBytes - 1], std::byte(rank + 1));
    EXPECT_EQ(found.slot(rank).barriers, 10u + rank);
    for (int to = 0; to < 3; ++to) EXPECT_EQ(found.ring(rank, to).written, 100u * rank + to);
  }
}

TEST(SegmentTest, DefaultRegionsAreLargeAndCostNothing) {
  Segment segment = Segment::create({.ranks = 8});
  EXPECT_GE(segment.region(7).size(), std::size_t{1} << 28);
  segment.region(7).back() = std::byte{1};
}

TEST(SegmentTest, CannotBeCutOff) {
  const Segment segment = Segment::create(small_segment(1));
  EXPECT_NE(ftruncate(segment.fd(), 4096), 0);
}

TEST(SegmentTest, ForeignDescriptorsAreRefused) {
  EXPECT_THAT(refusal(-1), HasSubstr("is not open"));
  const int empty = memfd_create("empty", MFD_CLOEXEC);
  EXPECT_THAT(refusal(empty), HasSubstr("something else"));
  close(empty);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_THAT(refusal(null), HasSubstr("something else"));
  close(null);
}

TEST(SegmentTest, HeadersThatDoNotFitAreRefused) {
  const Segment segment = Segment::create(small_segment(2));
  struct Case {
    off_t at;
    std::uint32_t value;
    const char* text;
  };
  const Case cases[] = {{0, 1, "something else"},   // magic
                        {8, 999, "another build"},  // version
                        {12, 3, "another build"},   // ranks
                        {12, 0, "another build"},   // no ranks
                        {12, 1 << 30, "another build"},
                        {16, 12345, "another build"},  // bytes of a ring
                        {24, 77, "another build"}};    // bytes of a region
  for (const Case& c : cases) {
    const int fd = forged(segment, c.at, c.value);
    EXPECT_THAT(refusal(fd), HasSubstr(c.text)) << c.at << " " << c.value;
    close(fd);
  }
  const int shorter = forged(segment, 4000, 0);
  ASSERT_EQ(ftruncate(shorter, 8192), 0);
  EXPECT_THAT(refusal(shorter), HasSubstr("another build"));
  close(shorter);
}

TEST(RingTest, BytesComeOutAsTheyWentIn) {
  Segment segment = Segment::create({.ranks = 1, .ring_bytes = 4096, .region_bytes = 1});
  RingWriter writer(segment.ring(0, 0), segment.ring_bytes(0, 0));
  RingReader reader(segment.ring(0, 0), segment.ring_bytes(0, 0));
  std::mt19937 random(7);
  std::uint8_t next_in = 0, next_out = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(random() % (writer.refresh() + 1));
    for (std::byte& byte : bytes) byte = std::byte(next_in++);
    writer.write(bytes);
    EXPECT_EQ(reader.refresh(), 4096 - writer.room() - bytes.size()) << "not published yet";
    writer.publish();
    bytes.resize(random() % (reader.refresh() + 1));
    reader.read(bytes);
    for (const std::byte byte : bytes) ASSERT_EQ(byte, std::byte(next_out++));
    reader.publish();
  }
}

}  // namespace
}  // namespace convoy::shm
