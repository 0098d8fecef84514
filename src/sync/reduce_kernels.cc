#include "sync/reduce_kernels.h"

#include "base/check.h"
#include "sync/reduce_loops.h"

namespace convoy {
namespace {

ReduceKernels choose() {
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512cd");
  return wide ? reduce_kernels_avx512() : reduce_kernels_avx2();
}

const ReduceKernels& kernels() {
  static const ReduceKernels chosen = choose();
  return chosen;
}

std::size_t row(Element element) { return static_cast<std::size_t>(element); }
std::size_t column(Reduction reduction) { return reduction == Reduction::max ? 1 : 0; }

}  // namespace

ReduceKernels reduce_kernels_avx2() { return kLoops; }

void combine(Element element, Reduction reduction, std::byte* into, const std::byte* from,
             std::size_t count) {
  kernels().combine[row(element)][column(reduction)](into, from, count);
}

void scale(Element element, std::byte* values, std::size_t count, double factor) {
  CHECK(element != Element::i64 || factor == 1, "integers are not scaled");
  if (factor != 1) kernels().scale[row(element)](values, count, factor);
}

void combine_all(Element element, Reduction reduction, double factor,
                 std::span<const std::byte* const> sources, std::span<std::byte* const> targets,
                 std::size_t count) {
  CHECK(!sources.empty(), "nothing to combine");
  CHECK(element != Element::i64 || factor == 1, "integers are not scaled");
  kernels().combine_all[row(element)][column(reduction)](factor, sources.data(), sources.size(),
                                                         targets.data(), targets.size(), count);
}

}  // namespace convoy
