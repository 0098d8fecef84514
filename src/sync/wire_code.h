// How the values of a range become the words of one message, and are added up from it: what the
// lossy wire formats do to gradients, whoever sums them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace convoy {

class WireCode {
 public:
  virtual ~WireCode() = default;

  // In words of 4 bytes, for a range that is not empty.
  virtual std::size_t words(std::size_t count) const = 0;
  // Whether what a message does not say of a range is to be added the next time.
  virtual bool feeds_back() const { return true; }
  // Writes the message for values + residual; leaves in `residual` what it does not say. Without
  // feedback `residual` is empty.
  virtual void encode(std::span<const float> values, std::span<float> residual,
                      std::span<std::uint32_t> message) = 0;
  // Why a message cannot be one for `count` values, given that it is as long as one; empty: it is
  // one, and all that it says is finite.
  virtual std::string fault(std::span<const std::uint32_t> message, std::size_t count) const = 0;
  // Adds factor * value to each element of `sum`, for the values from place `at` of the message's
  // range on. A faulty message is undefined behaviour.
  virtual void add(std::span<const std::uint32_t> message, std::size_t at, float factor,
                   std::span<float> sum) const = 0;
};

// A name of wire_formats(), as make_wire_format() takes it; null for f32, which needs no code.
// Throws ConfigError.
std::unique_ptr<WireCode> make_wire_code(const std::string& text);

// Where a code has no word for zero (1bit), the places of a range that must stay zero are made so
// afterwards. `places` of the arena, ascending; the range begins at `begin` of it.
void zero_places(std::span<const std::uint32_t> places, std::size_t begin, std::span<float> range);

// bf16: rounded to nearest, ties to even; what is not a number stays that.
void narrow_to_bf16(std::span<const float> from, std::uint16_t* into);
void widen_from_bf16(const std::uint16_t* from, std::span<float> into);

}  // namespace convoy
