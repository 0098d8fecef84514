// Against convolution by its definition, in f64.
#include "kernels/winograd/winograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/float_arena.h"
#include "base/rng.h"
#include "kernels/parallel.h"

namespace convoy::winograd {
namespace {

std::size_t value_place(const Shape& shape, int n, int c, int y, int x) {
  return ((std::size_t(n) * (shape.channels / 8) + c / 8) * shape.area() +
          std::size_t(y) * shape.width + x) *
             8 +
         c % 8;
}

struct Trial {
  Size size;
  int taps = size.kernel * size.kernel;
  FloatArena source, weights, bias, target_gradient;
  FloatArena target, source_gradient, weight_gradient, bias_gradient;

  Trial(const Size& sizes, std::uint64_t seed)
      : size(sizes),
        source(sizes.source.count() * sizes.batch),
        weights(std::size_t(sizes.source.channels) * sizes.target.channels * taps),
        bias(sizes.target.channels),
        target_gradient(sizes.target.count() * sizes.batch),
        target(target_gradient.size()),
        source_gradient(source.size()),
        weight_gradient(weights.size()),
        bias_gradient(bias.size()) {
    Rng rng(seed, Purpose::test);
    for (FloatArena* arena : {&source, &weights, &bias, &target_gradient})
      for (float& value : arena->span()) value = rng.normal();
    for (FloatArena* arena : {&target, &source_gradient, &weight_gradient, &bias_gradient})
      for (float& value : arena->span()) value = std::numeric_limits<float>::quiet_NaN();
  }

  std::size_t weight_place(int o, int i, int tap) const {
    return (((std::size_t(o / 8) * (size.source.channels / 8) + i / 8) * taps + tap) * 8 + i % 8) *
               8 +
           o % 8;
  }

  void run(bool relu = false, bool with_bias = true) {
    FloatArena scratch(scratch_bytes(size) / sizeof(float) + 1);
    for (float& value : scratch.span()) value = std::numeric_limits<float>::quiet_NaN();
    auto* memory = reinterpret_cast<std::byte*>(scratch.span().data());
    forward(size, source.span().data(), weights.span().data(),
            with_bias ? bias.span() : std::span<float>(), relu, target.span().data(), memory);
    backward_data(size, weights.span().data(), target_gradient.span().data(),
                  source_gradient.span().data(), memory);
    backward_weights(size, source.span().data(), target_gradient.span().data(),
                     weight_gradient.span().data(),
                     with_bias ? bias_gradient.span() : std::span<float>(), memory);
  }
};

// The largest difference, as a part of the largest number expected.
double error(const FloatArena& got, const std::vector<double>& expected) {
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double here = std::abs(got.span()[i] - expected[i]);
    if (!(here <= difference)) difference = here;  // a NaN counts
  }
  return difference / largest;
}

void expect_definition(Trial& trial) {
  const auto& [batch, in, out, kernel, padding, team] = trial.size;
  std::vector<double> target(trial.target.size()), source_gradient(trial.source.size()),
      weight_gradient(trial.weights.size()), bias_gradient(trial.bias.size());
  for (int n = 0; n < batch; ++n)
    for (int o = 0; o < out.channels; ++o)
      for (int y = 0; y < out.height; ++y)
        for (int x = 0; x < out.width; ++x) {
          const std::size_t at = value_place(out, n, o, y, x);
          const double gradient = trial.target_gradient.span()[at];
          double sum = trial.bias.span()[o];
          bias_gradient[o] += gradient;
          for (int tap = 0; tap < trial.taps; ++tap) {
            const int from_y = y + tap / kernel - padding, from_x = x + tap % kernel - padding;
            if (from_y < 0 || from_y >= in.height || from_x < 0 || from_x >= in.width) continue;
            for (int i = 0; i < in.channels; ++i) {
              const std::size_t from = value_place(in, n, i, from_y, from_x);
              const std::size_t weight = trial.weight_place(o, i, tap);
              sum += double(trial.source.span()[from]) * trial.weights.span()[weight];
              source_gradient[from] += gradient * trial.weights.span()[weight];
              weight_gradient[weight] += gradient * trial.source.span()[from];
            }
          }
          target[at] = sum;
        }
  EXPECT_LT(error(trial.target, target), 5e-5);
  EXPECT_LT(error(trial.source_gradient, source_gradient), 5e-5);
  EXPECT_LT(error(trial.weight_gradient, weight_gradient), 5e-5);
  EXPECT_LT(error(trial.bias_gradient, bias_gradient), 1e-6);
}

std::string name(const Size& size) {
  return size.source.to_string() + " to " + size.target.to_string() + ", batch " +
         std::to_string(size.batch) + ", kernel " + std::to_string(size.kernel) + ", padding " +
         std::to_string(size.padding);
}

Size random_size(Rng& rng, int most_channels, int most_positions) {
  const auto up_to = [&](int most) { return 1 + int(rng.below(std::uint32_t(most))); };
  const int kernel = rng.below(3) > 0 ? 3 : 5, padding = int(rng.below(std::uint32_t(kernel)));
  const Shape source{8 * up_to(most_channels / 8), kernel - 1 + up_to(most_positions),
                     kernel - 1 + up_to(most_positions)};
  // Sometimes smaller than it could be.
  const int cut = int(rng.below(2));
  const Shape target{8 * up_to(most_channels / 8),
                     std::max(1, source.height + 2 * padding - kernel + 1 - cut),
                     std::max(1, source.width + 2 * padding - kernel + 1 - cut)};
  return {up_to(7), source, target, kernel, padding, threads()};
}

TEST(Winograd, IsConvolution) {
  Rng rng(1, Purpose::test);
  for (int i = 0; i < 30; ++i) {
    Trial trial(random_size(rng, 40, 14), i);
    SCOPED_TRACE(name(trial.size));
    trial.run();
    expect_definition(trial);
  }
}

TEST(WinogradSlow, IsConvolutionAtManySizes) {
  Rng rng(2, Purpose::test);
  for (int i = 0; i < 25; ++i) {
    Trial trial(random_size(rng, 300, 16), i);
    SCOPED_TRACE(name(trial.size));
    trial.run();
    expect_definition(trial);
  }
}

TEST(Winograd, BiasAndReluAreOptional) {
  const Size size{2, {16, 6, 5}, {24, 6, 5}, 3, 1, threads()};
  Trial plain(size, 1), relu(size, 1), without(size, 1);
  plain.run();
  relu.run(true);
  without.run(false, false);
  for (std::size_t i = 0; i < plain.target.size(); ++i) {
    const float value = plain.target.span()[i];
    EXPECT_EQ(relu.target.span()[i], std::max(value, 0.0f));
    const std::size_t channel = i / 8 / size.target.area() % 3 * 8 + i % 8;
    EXPECT_NEAR(without.target.span()[i], value - plain.bias.span()[channel], 1e-4);
  }
}

TEST(Winograd, WhatIsNotANumberStaysSo) {
  Trial trial({1, {8, 4, 4}, {8, 4, 4}, 3, 1, threads()}, 1);
  trial.source.span()[0] = std::numeric_limits<float>::quiet_NaN();
  trial.run(true);
  EXPECT_TRUE(std::isnan(trial.target.span()[0]));
}

bool same_bits(const FloatArena& a, const FloatArena& b) {
  return std::memcmp(a.span().data(), b.span().data(), a.size() * sizeof(float)) == 0;
}

TEST(Winograd, NoBitDependsOnThreadsOrOnTheRestOfTheBatch) {
  const int before = threads();
  Size size{9, {72, 11, 9}, {40, 11, 9}, 3, 1, 1};
  set_threads(1);
  Trial one(size, 5);
  one.run();
  for (int count : {2, 3, 5}) {
    set_threads(count);
    size.threads = count == 3 ? 2 : count;  // scratch may be for fewer than there are
    Trial more(size, 5);
    more.run();
    EXPECT_TRUE(same_bits(one.target, more.target)) << count;
    EXPECT_TRUE(same_bits(one.source_gradient, more.source_gradient)) << count;
    EXPECT_TRUE(same_bits(one.weight_gradient, more.weight_gradient)) << count;
    EXPECT_TRUE(same_bits(one.bias_gradient, more.bias_gradient)) << count;
  }
  set_threads(before);
  Trial last({1, size.source, size.target, 3, 1, 1}, 6);
  std::copy_n(one.source.span().end() - last.source.size(), last.source.size(),
              last.source.span().begin());
  std::copy_n(one.weights.span().begin(), one.weights.size(), last.weights.span().begin());
  std::copy_n(one.bias.span().begin(), one.bias.size(), last.bias.span().begin());
  last.run();
  EXPECT_EQ(0, std::memcmp(last.target.span().data(),
                           one.target.span().data() + one.target.size() - last.target.size(),
                           last.target.size() * sizeof(float)));
}

}  // namespace
}  // namespace convoy::winograd
