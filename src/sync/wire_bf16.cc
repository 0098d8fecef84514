// Half the bytes: the upper halves of the floats, rounded to nearest, ties to even.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "sync/wire_parts.h"
#include "world/host_memory.h"

namespace convoy {

// Both loops are plain enough for the compiler to turn into vector instructions.
void narrow_to_bf16(std::span<const float> from, std::uint16_t* into) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(from[i]);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const std::uint32_t not_a_number = bits >> 16 | 0x40;  // must not round to infinity
    into[i] = std::uint16_t((bits & 0x7fffffff) > 0x7f800000 ? not_a_number : rounded);
  }
}

void widen_from_bf16(const std::uint16_t* from, std::span<float> into) {
  for (std::size_t i = 0; i < into.size(); ++i)
    into[i] = std::bit_cast<float>(std::uint32_t(from[i]) << 16);
}

namespace {

const std::uint16_t* halves_of(std::span<const std::uint32_t> message) {
  return reinterpret_cast<const std::uint16_t*>(message.data());
}

// Two to a word. What is lost of a value is 0.4 % at most, and not fed back.
class Bf16Code final : public WireCode {
 public:
  std::size_t words(std::size_t count) const override { return (count + 1) / 2; }
  bool feeds_back() const override { return false; }

  void encode(std::span<const float> values, std::span<float>,
              std::span<std::uint32_t> message) override {
    message.back() = 0;
    narrow_to_bf16(values, reinterpret_cast<std::uint16_t*>(message.data()));
  }

  std::string fault(std::span<const std::uint32_t> message, std::size_t count) const override {
    const std::uint16_t* halves = halves_of(message);
    constexpr std::uint16_t kExponent = 0x7f80;  // all ones: infinite, or no number
    std::uint16_t most = 0;
    for (std::size_t i = 0; i < count; ++i)
      most = std::max<std::uint16_t>(most, halves[i] & kExponent);
    return most == kExponent ? "numbers which are not finite" : "";
  }

  void add(std::span<const std::uint32_t> message, std::size_t at, float factor,
           std::span<float> sum) const override {
    const std::uint16_t* halves = halves_of(message) + at;
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += factor * std::bit_cast<float>(std::uint32_t(halves[i]) << 16);
  }
};

class Bf16Format final : public WireFormat {
 public:
  explicit Bf16Format(std::size_t arena_size) : arena_size_(arena_size) {}

  void sum(Communicator& communicator, std::size_t begin, std::span<float> values) override {
    CHECK(begin <= arena_size_ && values.size() <= arena_size_ - begin,
          "values {} to {} of an arena of {}", begin, begin + values.size(), arena_size_);
    if (values.empty()) return;
    const bool real = communicator.transport().carries_bytes();
    const std::span<std::byte> bytes = room(communicator, begin, values.size());
    auto* halves = reinterpret_cast<std::uint16_t*>(bytes.data());
    if (real) narrow_to_bf16(values, halves);
    communicator.all_reduce(bytes, Element::bf16, Reduction::sum);
    if (real) widen_from_bf16(halves, values);
  }
  std::size_t wire_bytes(std::size_t count, int ranks) const override {
    return ring_bytes(2 * count, ranks);
  }

 private:
  // Where all ranks take part and those of a host share memory, an arena of halves there: they are
  // then added up in place.
  std::span<std::byte> room(Communicator& communicator, std::size_t begin, std::size_t count) {
    Transport& transport = communicator.transport();
    HostMemory* const host = transport.host_memory();
    if (!scratch_) {
      scratch_.emplace(transport.carries_bytes());
      if (host && transport.carries_bytes() && communicator.size() == transport.size())
        shared_ = host->allocate(2 * arena_size_);
    }
    return shared_.empty() ? scratch_->room(2 * count) : shared_.subspan(2 * begin, 2 * count);
  }

  std::size_t arena_size_;
  std::span<std::byte> shared_;
  std::optional<Scratch> scratch_;
};

}  // namespace

std::unique_ptr<WireFormat> make_wire_bf16(std::size_t arena_size) {
  return std::make_unique<Bf16Format>(arena_size);
}

std::unique_ptr<WireCode> make_code_bf16() { return std::make_unique<Bf16Code>(); }

}  // namespace convoy
