// The arithmetic of collectives. bf16 is summed in f32 and rounded to nearest, ties to even.
// Buffers may lie anywhere; `factor` 1 leaves values as they are.
#pragma once

#include <cstddef>
#include <span>

#include "sync/element.h"

namespace convoy {

// into[i] = into[i] + from[i], or the larger of the two.
void combine(Element element, Reduction reduction, std::byte* into, const std::byte* from,
             std::size_t count);

void scale(Element element, std::byte* values, std::size_t count, double factor);

// Combines the sources in their order, once through memory: every target gets
// factor * (sources[0][i] + sources[1][i] + ...). Targets may be sources; bf16 is rounded once.
void combine_all(Element element, Reduction reduction, double factor,
                 std::span<const std::byte* const> sources, std::span<std::byte* const> targets,
                 std::size_t count);

// The loops for one instruction set, by element and by (sum or max).
struct ReduceKernels {
  void (*combine[3][2])(void* into, const void* from, std::size_t count);
  void (*scale[3])(void* values, std::size_t count, double factor);
  void (*combine_all[3][2])(double factor, const std::byte* const* sources,
                            std::size_t source_count, std::byte* const* targets,
                            std::size_t target_count, std::size_t count);
};
ReduceKernels reduce_kernels_avx2();
ReduceKernels reduce_kernels_avx512();  // only where the CPU has it

}  // namespace convoy
