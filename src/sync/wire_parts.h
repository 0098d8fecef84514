// What the wire formats have in common, and each of them by name. For wire_*.cc only.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "sync/wire_format.h"

namespace convoy {

std::unique_ptr<WireFormat> make_wire_f32();
std::unique_ptr<WireFormat> make_wire_bf16(std::size_t arena_size);
std::unique_ptr<WireFormat> make_wire_topk(std::size_t arena_size, double share);
std::unique_ptr<WireFormat> make_wire_1bit(std::size_t arena_size);

// Of an all-reduce by a ring: every rank passes on all chunks but one, twice.
inline std::size_t ring_bytes(std::size_t bytes, int ranks) {
  const std::size_t n = std::size_t(ranks);
  return (2 * (n - 1) * bytes + n - 1) / n;
}

// A format that gathers the messages of all ranks and adds them up in rank order on every rank, so
// that all get the same bytes. The messages for a range have one length on all ranks.
class GatheringFormat : public WireFormat {
 public:
  explicit GatheringFormat(std::size_t arena_size) : arena_size_(arena_size) {}

  void sum(Communicator& communicator, std::size_t begin, std::span<float> values) final;
  std::size_t wire_bytes(std::size_t count, int ranks) const final {
    return std::size_t(ranks - 1) * 4 * message_words(count);
  }
  // Takes its memory when it is first asked for: in a simulation without numbers, never.
  std::span<float> residual() final {
    if (residual_.size() != arena_size_) residual_.resize(arena_size_);
    return residual_;
  }

 private:
  // In words of 4 bytes, for a range that is not empty.
  virtual std::size_t message_words(std::size_t count) const = 0;
  // Writes the message for values + residual; leaves in `residual` what it does not say.
  virtual void encode(std::span<const float> values, std::span<float> residual,
                      std::span<std::uint32_t> message) = 0;
  // Adds the messages of all ranks, one after the other, into `sum`, whose content is undefined.
  virtual void decode(std::span<const std::uint32_t> messages, int ranks, std::span<float> sum) = 0;

  std::size_t arena_size_;
  std::vector<float> residual_;
  std::optional<Scratch> scratch_;
};

}  // namespace convoy
