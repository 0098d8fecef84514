#include "kernels/finite.h"

#include "kernels/parallel.h"

namespace convoy {

// A number times zero is zero unless it is infinite or none; sums keep what is not.
bool all_finite(std::span<const float> values) {
  bool finite = true;
  parallel_for(values.size(), std::size_t{1} << 16, [&](std::size_t begin, std::size_t end) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = begin; i < end; ++i) sum += values[i] * 0.0f;
    if (!(sum == 0.0f)) __atomic_store_n(&finite, false, __ATOMIC_RELAXED);
  });
  return finite;
}

}  // namespace convoy
