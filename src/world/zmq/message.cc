#include "world/zmq/message.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace convoy {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

template <typename T>
void put(std::span<std::byte> bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <typename T>
T get(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool has_message(FrameKind kind) {
  return kind == FrameKind::eager || kind == FrameKind::offer || kind == FrameKind::segment ||
         kind == FrameKind::accept;
}

// The fields that the kind does not use must be zero.
bool is_consistent(const Frame& frame) {
  const std::size_t bytes = frame.payload.size();
  const bool message = has_message(frame.kind);
  if (!message && frame.id != 0) return false;
  const bool sized =
      (message && frame.kind != FrameKind::accept) || frame.kind == FrameKind::credit;
  if (!sized && frame.total != 0) return false;
  const bool placed = frame.kind == FrameKind::segment || frame.kind == FrameKind::credit;
  if (!placed && frame.offset != 0) return false;
  const bool tagged = frame.kind == FrameKind::eager || frame.kind == FrameKind::offer ||
                      frame.kind == FrameKind::hello || frame.kind == FrameKind::proof;
  if (tagged ? frame.tag > kLargestTag : frame.tag != 0) return false;
  switch (frame.kind) {
    case FrameKind::eager:
      return bytes == std::min<std::uint64_t>(frame.total, kSegmentBytes);
    case FrameKind::segment:
      return bytes > 0 && bytes <= kSegmentBytes && frame.offset <= frame.total &&
             bytes <= frame.total - frame.offset;
    case FrameKind::offer:
      return frame.total > 0 && bytes == 0;
    case FrameKind::hello:
      return bytes == kNonceBytes;
    case FrameKind::challenge:
      return bytes == kNonceBytes + kCodeBytes;
    case FrameKind::proof:
      return bytes == kCodeBytes;
    case FrameKind::accept:
    case FrameKind::credit:
    case FrameKind::bye:
    case FrameKind::bye_heard:
      return bytes == 0;
  }
  return false;
}

}  // namespace

FrameHead encode_frame(const Frame& frame) {
  FrameHead head{};
  put(head, 0, frame.kind);
  put(head, 4, frame.tag);
  put(head, 8, frame.id);
  put(head, 16, frame.total);
  put(head, 24, frame.offset);
  return head;
}

std::optional<Frame> decode_frame(std::span<const std::byte> head,
                                  std::span<const std::byte> payload) {
  if (head.size() != kFrameHeadBytes) return std::nullopt;
  if (head[1] != std::byte{} || head[2] != std::byte{} || head[3] != std::byte{})
    return std::nullopt;
  const Frame frame{.kind = get<FrameKind>(head, 0),
                    .tag = get<Tag>(head, 4),
                    .id = get<std::uint64_t>(head, 8),
                    .total = get<std::uint64_t>(head, 16),
                    .offset = get<std::uint64_t>(head, 24),
                    .payload = payload};
  if (!is_consistent(frame)) return std::nullopt;
  return frame;
}

std::vector<std::byte> encode_control(const ControlMessage& message) {
  std::size_t bytes = 16 + 8 * message.numbers.size();
  for (const std::string& text : message.texts)
    bytes += 4 + std::min(text.size(), kMostControlText);
  std::vector<std::byte> out(bytes);
  put(out, 0, message.kind);
  put(out, 4, static_cast<std::int32_t>(message.rank));
  put(out, 8, static_cast<std::uint32_t>(message.numbers.size()));
  put(out, 12, static_cast<std::uint32_t>(message.texts.size()));
  std::size_t at = 16;
  for (const std::uint64_t number : message.numbers) {
    put(out, at, number);
    at += 8;
  }
  for (const std::string& text : message.texts) {
    const std::size_t length = std::min(text.size(), kMostControlText);
    put(out, at, static_cast<std::uint32_t>(length));
    std::memcpy(out.data() + at + 4, text.data(), length);
    at += 4 + length;
  }
  return out;
}

std::optional<ControlMessage> decode_control(std::span<const std::byte> bytes) {
  if (bytes.size() < 16) return std::nullopt;
  ControlMessage message{.kind = get<ControlKind>(bytes, 0), .rank = get<std::int32_t>(bytes, 4)};
  if (message.kind < ControlKind::hello || message.kind > ControlKind::connected)
    return std::nullopt;
  if (bytes[1] != std::byte{} || bytes[2] != std::byte{} || bytes[3] != std::byte{})
    return std::nullopt;
  const std::size_t numbers = get<std::uint32_t>(bytes, 8), texts = get<std::uint32_t>(bytes, 12);
  bytes = bytes.subspan(16);
  if (numbers > kMostControlItems || texts > kMostControlItems || bytes.size() < 8 * numbers)
    return std::nullopt;
  for (std::size_t i = 0; i < numbers; ++i)
    message.numbers.push_back(get<std::uint64_t>(bytes, 8 * i));
  bytes = bytes.subspan(8 * numbers);
  for (std::size_t i = 0; i < texts; ++i) {
    if (bytes.size() < 4) return std::nullopt;
    const std::size_t length = get<std::uint32_t>(bytes, 0);
    if (length > kMostControlText || length > bytes.size() - 4) return std::nullopt;
    message.texts.emplace_back(reinterpret_cast<const char*>(bytes.data()) + 4, length);
    bytes = bytes.subspan(4 + length);
  }
  if (!bytes.empty()) return std::nullopt;
  return message;
}

}  // namespace convoy
