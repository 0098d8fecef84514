// The loops of the reductions, in plain C++ that the compiler turns into the vector instructions of
// the file that includes this. Everything has internal linkage and nothing comes from the standard
// library, so that no copy for a wider CPU can end up in code for all.
#pragma once

#include "sync/reduce_kernels.h"

namespace convoy {
namespace {

struct F32 {
  using Stored = float;
  using Value = float;
  static Value load(Stored stored) { return stored; }
  static Stored store(Value value) { return value; }
};

struct I64 {
  using Stored = long long;
  using Value = long long;
  static Value load(Stored stored) { return stored; }
  static Stored store(Value value) { return value; }
};

struct Bf16 {
  using Stored = unsigned short;
  using Value = float;
  static Value load(Stored stored) {
    return __builtin_bit_cast(float, static_cast<unsigned>(stored) << 16);
  }
  static Stored store(Value value) {
    const unsigned bits = __builtin_bit_cast(unsigned, value);
    const unsigned rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const unsigned not_a_number = bits >> 16 | 0x40;
    return static_cast<Stored>((bits & 0x7fffffff) > 0x7f800000 ? not_a_number : rounded);
  }
};

struct Sum {
  // Sums of integers wrap around; as unsigned numbers, because signed ones must not.
  static long long join(long long a, long long b) {
    return static_cast<long long>(static_cast<unsigned long long>(a) +
                                  static_cast<unsigned long long>(b));
  }
  static float join(float a, float b) { return a + b; }
};

struct Max {
  template <typename Value>
  static Value join(Value a, Value b) {
    return b > a ? b : a;
  }
};

template <typename Type, typename Join>
void combine_loop(void* into, const void* from, std::size_t count) {
  auto* __restrict a = static_cast<typename Type::Stored*>(into);
  const auto* __restrict b = static_cast<const typename Type::Stored*>(from);
  for (std::size_t i = 0; i < count; ++i)
    a[i] = Type::store(Join::join(Type::load(a[i]), Type::load(b[i])));
}

template <typename Type>
void scale_loop(void* values, std::size_t count, double factor) {
  auto* __restrict a = static_cast<typename Type::Stored*>(values);
  const auto by = static_cast<typename Type::Value>(factor);
  for (std::size_t i = 0; i < count; ++i) a[i] = Type::store(Type::load(a[i]) * by);
}

// In blocks that stay in the first-level cache between their sum and the copies of it.
template <typename Type, typename Join>
void combine_all_loop(double factor, const std::byte* const* sources, std::size_t source_count,
                      std::byte* const* targets, std::size_t target_count, std::size_t count) {
  using Stored = typename Type::Stored;
  using Value = typename Type::Value;
  constexpr std::size_t kBlock = 1024;
  alignas(64) Value sums[kBlock];
  alignas(64) Stored results[kBlock];
  const auto by = static_cast<Value>(factor);
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t length = count - begin < kBlock ? count - begin : kBlock;
    const auto* first = reinterpret_cast<const Stored*>(sources[0]) + begin;
    if (source_count == 1) {
      for (std::size_t i = 0; i < length; ++i) sums[i] = Type::load(first[i]);
    } else {
      const auto* second = reinterpret_cast<const Stored*>(sources[1]) + begin;
      for (std::size_t i = 0; i < length; ++i)
        sums[i] = Join::join(Type::load(first[i]), Type::load(second[i]));
    }
    for (std::size_t s = 2; s < source_count; ++s) {
      const auto* next = reinterpret_cast<const Stored*>(sources[s]) + begin;
      for (std::size_t i = 0; i < length; ++i) sums[i] = Join::join(sums[i], Type::load(next[i]));
    }
    if (factor != 1)
      for (std::size_t i = 0; i < length; ++i) results[i] = Type::store(sums[i] * by);
    else
      for (std::size_t i = 0; i < length; ++i) results[i] = Type::store(sums[i]);
    for (std::size_t t = 0; t < target_count; ++t)
      __builtin_memcpy(reinterpret_cast<Stored*>(targets[t]) + begin, results,
                       length * sizeof(Stored));
  }
}

constexpr ReduceKernels kLoops = {{{combine_loop<F32, Sum>, combine_loop<F32, Max>},
                                   {combine_loop<Bf16, Sum>, combine_loop<Bf16, Max>},
                                   {combine_loop<I64, Sum>, combine_loop<I64, Max>}},
                                  {scale_loop<F32>, scale_loop<Bf16>, scale_loop<I64>},
                                  {{combine_all_loop<F32, Sum>, combine_all_loop<F32, Max>},
                                   {combine_all_loop<Bf16, Sum>, combine_all_loop<Bf16, Max>},
                                   {combine_all_loop<I64, Sum>, combine_all_loop<I64, Max>}}};

}  // namespace
}  // namespace convoy
