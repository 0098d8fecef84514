// What travels between ranks, and between a rank and the rendezvous, as bytes. Decoding is the
// place where foreign bytes are judged: it accepts exactly what encoding makes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "world/transport.h"

namespace convoy {

// A message longer than this is cut into segments. A heartbeat gets through between two segments,
// and every segment is a sign of life, so that a slow link is not taken for a dead one.
inline constexpr std::size_t kSegmentBytes = 256 << 10;

enum class FrameKind : std::uint8_t {
  eager = 1,  // a message begins, with its first segment
  offer,      // a message begins; its segments wait for accept
  segment,    // more of a message
  accept,     // the receive is posted: send the segments
  credit,     // the receiver has taken bytes in
  bye,        // the sender ends its work; nothing of it follows
  bye_heard,  // the answer to bye
  hello,      // first frame of a connection: rank and nonce
  challenge,  // the answer to hello: nonce and code
  proof,      // the answer to challenge: code
};

inline constexpr std::size_t kNonceBytes = 16;
inline constexpr std::size_t kCodeBytes = 32;

struct Frame {
  FrameKind kind{};
  Tag tag = 0;               // eager, offer: of the message; hello, proof: the rank
  std::uint64_t id = 0;      // eager, offer, segment, accept: names the message for its sender
  std::uint64_t total = 0;   // eager, offer, segment: bytes of the message; credit: eager bytes
  std::uint64_t offset = 0;  // segment: where its bytes belong; credit: bytes of accepted messages
  std::span<const std::byte> payload{};
};

inline constexpr std::size_t kFrameHeadBytes = 32;
using FrameHead = std::array<std::byte, kFrameHeadBytes>;

// The head; the payload travels behind it as a part of its own if it is not empty.
FrameHead encode_frame(const Frame& frame);
// Nothing if this is no frame of ours. The payload refers to the bytes given.
std::optional<Frame> decode_frame(std::span<const std::byte> head,
                                  std::span<const std::byte> payload);

enum class ControlKind : std::uint8_t {
  hello = 1,       // rank to rendezvous: numbers {size, pid}, texts {job id, host, build, endpoint}
  refused,         // answer: texts {why}
  table,           // to all, when all have come: texts {endpoint of every rank}
  failed,          // rank to rendezvous: it gives up, texts {why}
  heard,           // the answer to failed and leaving
  lost,            // both ways: `rank` is lost, texts {why}
  leaving,         // rank to rendezvous: it ends properly
  position,        // rank to rendezvous: numbers {sequence, bytes}, texts {place}
  where,           // rank to rendezvous: asks for positions
  positions,       // answer: numbers {told or not, sequence, bytes, age in microseconds} and texts
                   // {place} for every rank
  who_is_missing,  // rank to rendezvous: asks for missing
  missing,         // answer: numbers {rank...}
  connected,       // rank to rendezvous: it has connections with all others; to all, when all have
};

struct ControlMessage {
  ControlKind kind{};
  int rank = 0;
  std::vector<std::uint64_t> numbers{};
  std::vector<std::string> texts{};
  bool operator==(const ControlMessage&) const = default;
};

inline constexpr std::size_t kMostControlItems = 1 << 16;
inline constexpr std::size_t kMostControlText = 4096;  // longer texts are cut

std::vector<std::byte> encode_control(const ControlMessage& message);
std::optional<ControlMessage> decode_control(std::span<const std::byte> bytes);

}  // namespace convoy
