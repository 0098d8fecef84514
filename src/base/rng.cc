#include "base/rng.h"

#include <cmath>
#include <numbers>

namespace convoy {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t(0xD2511F53u) * c[0];
    const std::uint64_t b = std::uint64_t(0xCD9E8D57u) * c[2];
    c = {std::uint32_t(b >> 32) ^ c[1] ^ key[0], std::uint32_t(b),
         std::uint32_t(a >> 32) ^ c[3] ^ key[1], std::uint32_t(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c;
}

// Counter words: [block, epoch, sample low, sample high ^ purpose in the top byte]; key: the seed.
Rng::Rng(std::uint64_t seed, Purpose purpose, std::uint32_t epoch, std::uint64_t sample)
    : key_{std::uint32_t(seed), std::uint32_t(seed >> 32)},
      counter_{0, epoch, std::uint32_t(sample),
               std::uint32_t(sample >> 32) ^ (std::uint32_t(purpose) << 24)} {}

void Rng::refill() {
  block_ = philox(counter_, key_);
  ++counter_[0];
  used_ = 0;
}

std::uint32_t Rng::next() {
  if (used_ == 4) refill();
  return block_[used_++];
}

float Rng::uniform() { return float(next() >> 8) * 0x1p-24f; }

float Rng::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  // Box-Muller in double, so that the result does not depend on a fast float library.
  const double radius = std::sqrt(-2.0 * std::log((double(next()) + 1.0) * 0x1p-32));
  const double angle = 2.0 * std::numbers::pi * (double(next()) * 0x1p-32);
  spare_ = float(radius * std::sin(angle));
  has_spare_ = true;
  return float(radius * std::cos(angle));
}

// Lemire's method: the high half of a product, with the few biased values rejected.
std::uint32_t Rng::below(std::uint32_t bound) {
  std::uint64_t product = std::uint64_t(next()) * bound;
  if (std::uint32_t(product) < bound) {
    const std::uint32_t threshold = -bound % bound;
    while (std::uint32_t(product) < threshold) product = std::uint64_t(next()) * bound;
  }
  return std::uint32_t(product >> 32);
}

}  // namespace convoy
