// What the cases of the transport's contract have in common.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "world/host_memory.h"
#include "world/transport_contract.h"

namespace convoy {

inline constexpr double kWait_s = 60;

template <typename... Args>
void require(bool held, fmt::format_string<Args...> text, Args&&... args) {
  if (!held) throw std::runtime_error(fmt::format(text, std::forward<Args>(args)...));
}

// A block that differs by place and by seed, repeated. Its length is prime, so that pieces of a
// message that change places are found out.
inline constexpr std::size_t kPatternBlock = 4099;

inline std::vector<std::byte> pattern_block(int seed) {
  std::vector<std::byte> block(kPatternBlock);
  std::uint32_t state = static_cast<std::uint32_t>(seed) * 0x85ebca6bu + 1;
  for (std::byte& byte : block) {
    state = state * 0x9e3779b1u + 0x7f4a7c15u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return block;
}

inline std::vector<std::byte> pattern(std::size_t bytes, int seed) {
  const std::vector<std::byte> block = pattern_block(seed);
  std::vector<std::byte> made(bytes);
  for (std::size_t place = 0; place < bytes; place += kPatternBlock)
    std::memcpy(&made[place], block.data(), std::min(kPatternBlock, bytes - place));
  return made;
}

inline void require_pattern(const Transport& transport, std::span<const std::byte> bytes,
                            int seed) {
  if (!transport.carries_bytes()) return;
  const std::vector<std::byte> block = pattern_block(seed);
  for (std::size_t place = 0; place < bytes.size(); place += kPatternBlock) {
    const std::size_t length = std::min(kPatternBlock, bytes.size() - place);
    require(std::memcmp(&bytes[place], block.data(), length) == 0,
            "rank {}: wrong bytes from {} on, of {}", transport.rank(), place, bytes.size());
  }
}

// A message of exactly this length and pattern comes.
inline void receive(Transport& transport, int from, Tag tag, std::size_t bytes, int seed) {
  std::vector<std::byte> buffer(bytes);
  const Completion done = transport.wait(transport.recv(from, tag, buffer), kWait_s);
  require(done.bytes == bytes, "rank {}: {} bytes instead of {}", transport.rank(), done.bytes,
          bytes);
  require_pattern(transport, buffer, seed);
}

// The Error that `action` throws, if it does.
template <typename Error, typename Action>
std::optional<Error> failure(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// Returns when all ranks have come here: rank 0 hears from everybody, then tells everybody. Nobody
// waits for the empty messages that it sends: their receiver may hear them and leave at once, and
// close() flushes them.
inline void meet(Transport& transport, Tag tag) {
  if (transport.rank() != 0) {
    transport.send(0, tag, {});
    transport.wait(transport.recv(0, tag, {}), kWait_s);
    return;
  }
  for (int peer = 1; peer < transport.size(); ++peer)
    transport.wait(transport.recv(peer, tag, {}), kWait_s);
  for (int peer = 1; peer < transport.size(); ++peer) transport.send(peer, tag, {});
}

inline void end(World world) {
  meet(world.transport, 1'000'000);
  world.transport.close(kWait_s);
}

}  // namespace convoy
