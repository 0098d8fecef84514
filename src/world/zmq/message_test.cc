#include "world/zmq/message.h"

#include <gtest/gtest.h>

#include <limits>

namespace convoy {
namespace {

std::vector<std::byte> bytes(std::size_t count) { return std::vector<std::byte>(count); }

TEST(Message, FramesComeBackAsTheyWere) {
  const auto segment = bytes(kSegmentBytes), nonce = bytes(kNonceBytes), code = bytes(kCodeBytes),
             both = bytes(kNonceBytes + kCodeBytes), few = bytes(3);
  const std::vector<Frame> frames = {
      {.kind = FrameKind::eager, .tag = 7, .id = 1, .total = 3, .payload = few},
      {.kind = FrameKind::eager, .tag = kLargestTag, .id = 2, .total = 1 << 20, .payload = segment},
      {.kind = FrameKind::eager, .tag = 0, .id = 3},
      {.kind = FrameKind::offer, .tag = 1, .id = 4, .total = 1ull << 40},
      {.kind = FrameKind::segment, .id = 4, .total = 100, .offset = 97, .payload = few},
      {.kind = FrameKind::accept, .id = 4},
      {.kind = FrameKind::credit, .total = 5, .offset = 6},
      {.kind = FrameKind::bye},
      {.kind = FrameKind::bye_heard},
      {.kind = FrameKind::hello, .tag = 3, .payload = nonce},
      {.kind = FrameKind::challenge, .payload = both},
      {.kind = FrameKind::proof, .tag = 3, .payload = code},
  };
  for (const Frame& frame : frames) {
    const auto read = decode_frame(encode_frame(frame), frame.payload);
    ASSERT_TRUE(read) << static_cast<int>(frame.kind);
    EXPECT_EQ(read->kind, frame.kind);
    EXPECT_EQ(read->tag, frame.tag);
    EXPECT_EQ(read->id, frame.id);
    EXPECT_EQ(read->total, frame.total);
    EXPECT_EQ(read->offset, frame.offset);
    EXPECT_EQ(read->payload.data(), frame.payload.data());
  }
}

TEST(Message, RefusesWhatNoRankSends) {
  const auto few = bytes(3), large = bytes(kSegmentBytes + 1);
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const std::vector<Frame> frames = {
      {.kind = static_cast<FrameKind>(0)},
      {.kind = static_cast<FrameKind>(99)},
      {.kind = FrameKind::eager, .total = 4, .payload = few},
      {.kind = FrameKind::eager, .tag = kLargestTag + 1, .total = 3, .payload = few},
      {.kind = FrameKind::eager, .total = kSegmentBytes + 1, .payload = large},
      {.kind = FrameKind::offer, .total = 0},
      {.kind = FrameKind::offer, .total = 3, .payload = few},
      {.kind = FrameKind::segment, .total = 100, .offset = 98, .payload = few},
      {.kind = FrameKind::segment, .total = 100, .offset = most - 1, .payload = few},
      {.kind = FrameKind::segment, .total = 100, .offset = 98},
      {.kind = FrameKind::segment, .total = most, .payload = large},
      {.kind = FrameKind::accept, .id = 1, .total = 1},
      {.kind = FrameKind::bye, .id = 1},
      {.kind = FrameKind::hello, .payload = few},
      {.kind = FrameKind::proof, .payload = few},
      {.kind = FrameKind::challenge, .tag = 1, .payload = few},
  };
  for (const Frame& frame : frames)
    EXPECT_FALSE(decode_frame(encode_frame(frame), frame.payload)) << static_cast<int>(frame.kind);
  EXPECT_FALSE(decode_frame({}, {}));
  EXPECT_FALSE(decode_frame(bytes(kFrameHeadBytes - 1), {}));
  EXPECT_FALSE(decode_frame(bytes(kFrameHeadBytes + 1), {}));
}

TEST(Message, ControlMessagesComeBackAsTheyWere) {
  const ControlMessage message{.kind = ControlKind::hello,
                               .rank = 3,
                               .numbers = {0, 1, std::numeric_limits<std::uint64_t>::max()},
                               .texts = {"", "host", std::string("a\0b", 3)}};
  EXPECT_EQ(decode_control(encode_control(message)), message);
}

TEST(Message, ControlMessagesAreWholeOrNothing) {
  const std::vector<std::byte> whole = encode_control(
      {.kind = ControlKind::lost, .rank = 1, .numbers = {1, 2}, .texts = {"why", "not"}});
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(decode_control(std::span(whole).first(length))) << length;
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{});
  EXPECT_FALSE(decode_control(longer));
  for (const std::size_t place : {8, 12, 32}) {  // the two counts, and a text's length
    std::vector<std::byte> wild = whole;
    wild[place + 3] = std::byte{0xff};
    EXPECT_FALSE(decode_control(wild)) << place;
  }
}

TEST(Message, LongReasonsAreCut) {
  const auto read = decode_control(
      encode_control({.kind = ControlKind::failed, .texts = {std::string(100'000, 'x')}}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->texts[0], std::string(kMostControlText, 'x'));
}

}  // namespace
}  // namespace convoy
