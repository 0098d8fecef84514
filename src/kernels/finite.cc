#include "kernels/finite.h"

#include <bit>
#include <cstdint>

#include "kernels/parallel.h"

namespace convoy {
namespace {

// What is infinite or none has an exponent of ones, and a larger magnitude than any number. As
// integers, since the largest of those is found in vectors, and in any order.
std::int32_t largest_magnitude(const float* values, std::size_t count) {
  std::int32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t bits = std::bit_cast<std::int32_t>(values[i]) & 0x7fffffff;
    most = bits > most ? bits : most;
  }
  return most;
}

}  // namespace

bool all_finite(std::span<const float> values) {
  constexpr std::int32_t kInfinity = 0x7f800000;
  bool finite = true;
  parallel_for(values.size(), std::size_t{1} << 16, [&](std::size_t begin, std::size_t end) {
    if (largest_magnitude(values.data() + begin, end - begin) >= kInfinity)
      __atomic_store_n(&finite, false, __ATOMIC_RELAXED);
  });
  return finite;
}

}  // namespace convoy
