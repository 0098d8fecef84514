#include "sync/reduce_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace convoy {
namespace {

float from_bf16(std::uint16_t half) { return std::bit_cast<float>(std::uint32_t(half) << 16); }

// The nearest bf16, ties to even, by looking at both neighbours.
std::uint16_t nearest_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto below = std::uint16_t(bits >> 16), above = std::uint16_t((bits >> 16) + 1);
  const double down = std::fabs(double(value) - from_bf16(below));
  const double up = std::fabs(double(from_bf16(above)) - value);
  if (down == up) return below % 2 == 0 ? below : above;
  return down < up ? below : above;
}

template <typename Number>
std::byte* bytes(std::vector<Number>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

constexpr std::size_t kLengths[] = {0, 1, 7, 16, 33, 1023, 1024, 1025, 5000};

TEST(ReduceKernelsTest, CombineFloats) {
  Rng rng(1, Purpose::test);
  for (std::size_t length : kLengths)
    for (const Reduction reduction : {Reduction::sum, Reduction::max}) {
      std::vector<float> a(length), b(length), right(length);
      for (std::size_t i = 0; i < length; ++i) {
        a[i] = rng.normal();
        b[i] = rng.normal();
        right[i] = reduction == Reduction::max ? std::max(a[i], b[i]) : a[i] + b[i];
      }
      combine(Element::f32, reduction, bytes(a), bytes(b), length);
      EXPECT_EQ(a, right);
    }
}

TEST(ReduceKernelsTest, CombineIntegers) {
  std::vector<std::int64_t> a = {1, -5, std::numeric_limits<std::int64_t>::max(), 0, 9};
  std::vector<std::int64_t> b = {2, 5, 0, -7, 9}, larger = a;
  combine(Element::i64, Reduction::max, bytes(larger), bytes(b), 5);
  EXPECT_EQ(larger,
            (std::vector<std::int64_t>{2, 5, std::numeric_limits<std::int64_t>::max(), 0, 9}));
  combine(Element::i64, Reduction::sum, bytes(a), bytes(b), 5);
  EXPECT_EQ(a, (std::vector<std::int64_t>{3, 0, std::numeric_limits<std::int64_t>::max(), -7, 18}));
}

TEST(ReduceKernelsTest, Bf16RoundsToNearest) {
  Rng rng(2, Purpose::test);
  const std::size_t length = 10'000;
  std::vector<std::uint16_t> a(length), b(length), right(length);
  for (std::size_t i = 0; i < length; ++i) {
    a[i] = nearest_bf16(rng.normal());
    b[i] = nearest_bf16(rng.normal() * 0.01f);
    right[i] = nearest_bf16(from_bf16(a[i]) + from_bf16(b[i]));
  }
  combine(Element::bf16, Reduction::sum, bytes(a), bytes(b), length);
  EXPECT_EQ(a, right);
}

TEST(ReduceKernelsTest, Bf16KeepsNotANumberAndInfinity) {
  std::vector<std::uint16_t> a = {0x7f80, 0xff80, 0x7fc0, 0x7f81, 0x7f80}, b = {0, 0, 0, 0, 0xff80};
  combine(Element::bf16, Reduction::sum, bytes(a), bytes(b), a.size());
  EXPECT_EQ(a[0], 0x7f80);
  EXPECT_EQ(a[1], 0xff80);
  for (int i : {2, 3, 4}) EXPECT_TRUE(std::isnan(from_bf16(a[std::size_t(i)]))) << i;
}

TEST(ReduceKernelsTest, CombineAllAddsInTheOrderOfTheSourcesAndRoundsOnce) {
  for (const std::size_t sources : {1u, 2u, 3u, 4u, 7u})
    for (std::size_t length : kLengths) {
      Rng rng(3, Purpose::test);
      std::vector<std::vector<float>> buffers(sources, std::vector<float>(length));
      std::vector<std::vector<std::uint16_t>> halves(sources, std::vector<std::uint16_t>(length));
      std::vector<float> right(length);
      std::vector<std::uint16_t> right_half(length);
      for (std::size_t i = 0; i < length; ++i) {
        float sum = 0, half_sum = 0;
        for (std::size_t s = 0; s < sources; ++s) {
          buffers[s][i] = rng.normal();
          halves[s][i] = nearest_bf16(rng.normal());
          sum = s == 0 ? buffers[s][i] : sum + buffers[s][i];
          half_sum = s == 0 ? from_bf16(halves[s][i]) : half_sum + from_bf16(halves[s][i]);
        }
        right[i] = sum * 0.5f;
        right_half[i] = nearest_bf16(half_sum * 0.5f);
      }
      std::vector<std::byte*> all, all_halves;
      for (auto& buffer : buffers) all.push_back(bytes(buffer));
      for (auto& buffer : halves) all_halves.push_back(bytes(buffer));
      const auto sources_of = [](std::vector<std::byte*>& from) {
        return std::span<const std::byte* const>(const_cast<const std::byte* const*>(from.data()),
                                                 from.size());
      };
      combine_all(Element::f32, Reduction::sum, 0.5, sources_of(all), all, length);
      combine_all(Element::bf16, Reduction::sum, 0.5, sources_of(all_halves), all_halves, length);
      for (const auto& buffer : buffers) EXPECT_EQ(buffer, right);
      for (const auto& buffer : halves) EXPECT_EQ(buffer, right_half);
    }
}

TEST(ReduceKernelsTest, WideAndNarrowAgree) {
  if (!__builtin_cpu_supports("avx512bw")) return;  // then there is nothing wide to compare
  Rng rng(4, Purpose::test);
  const std::size_t length = 4099;
  std::vector<std::uint16_t> a(length), b(length);
  for (std::size_t i = 0; i < length; ++i) {
    a[i] = std::uint16_t(rng.next());
    b[i] = std::uint16_t(rng.next());
  }
  std::vector<std::uint16_t> c = a;
  reduce_kernels_avx2().combine[1][0](a.data(), b.data(), length);
  reduce_kernels_avx512().combine[1][0](c.data(), b.data(), length);
  EXPECT_EQ(a, c);
}

}  // namespace
}  // namespace convoy
