#include "kernels/onednn/norm_planes.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "kernels/onednn/engine.h"
#include "kernels/parallel.h"

namespace convoy::onednn {
namespace {

// Where channel c of sample n at position i lies.
std::size_t place(const Shape& shape, int n, int c, std::size_t i) {
  if (!is_blocked(shape)) return std::size_t(n) * shape.channels + c;
  return n * value_floats(shape) + (std::size_t(c / block()) * shape.area() + i) * block() +
         c % block();
}

// Zero where it pads.
std::vector<float> random_value(const Shape& shape, int batch, std::uint64_t seed) {
  std::vector<float> value(value_floats(shape) * batch);
  Rng rng(seed, Purpose::test);
  for (int n = 0; n < batch; ++n)
    for (int c = 0; c < shape.channels; ++c)
      for (std::size_t i = 0; i < shape.area(); ++i)
        value[place(shape, n, c, i)] = rng.normal() + float(c % 3);
  return value;
}

const std::vector<Shape> kShapes = {{16, 5, 7}, {20, 3, 3}, {50, 33, 31}, {20, 1, 1}, {64, 1, 1}};

NormStatistics sums_of(const Shape& shape, int batch, const std::vector<float>& x) {
  NormStatistics statistics(nullptr, shape.channels);
  std::vector<double> partial(channel_sums_bytes(shape, batch) / sizeof(double));
  channel_sums(shape, batch, x.data(), partial.data(), statistics);
  return statistics;
}

TEST(NormPlanes, SumsAreThoseOfEachChannel) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.to_string());
    const int batch = 5;
    const std::vector<float> x = random_value(shape, batch, 1);
    const NormStatistics got = sums_of(shape, batch, x);
    for (int c = 0; c < shape.channels; ++c) {
      double sum = 0, squares = 0;
      for (int n = 0; n < batch; ++n)
        for (std::size_t i = 0; i < shape.area(); ++i) {
          const double v = x[place(shape, n, c, i)];
          sum += v;
          squares += v * v;
        }
      EXPECT_NEAR(got.first(c), sum, 1e-10 * squares + 1e-12) << c;
      EXPECT_NEAR(got.second(c), squares, 1e-10 * squares) << c;
    }
  }
}

TEST(NormPlanes, SumsDoNotDependOnThreads) {
  const Shape shape{50, 33, 31};
  const std::vector<float> x = random_value(shape, 7, 2);
  set_threads(1);
  const NormStatistics one = sums_of(shape, 7, x);
  for (int threads : {2, 3}) {
    set_threads(threads);
    const NormStatistics many = sums_of(shape, 7, x);
    for (int c = 0; c < shape.channels; ++c) {
      EXPECT_EQ(one.first(c), many.first(c));
      EXPECT_EQ(one.second(c), many.second(c));
    }
  }
  set_threads(0);
}

TEST(NormPlanes, AddLinearIsByChannelAndKeepsPadding) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.to_string());
    const int batch = 3;
    const std::vector<float> x = random_value(shape, batch, 3);
    const std::vector<float> before = random_value(shape, batch, 4);
    std::vector<float> gradient = before;
    std::vector<float> slope(std::size_t(shape.channels + 15) / 16 * 16), offset(slope.size());
    for (int c = 0; c < shape.channels; ++c) {
      slope[c] = 0.5f + float(c);
      offset[c] = 0.25f * float(c) - 1;
    }
    add_linear(shape, batch, slope, offset, x.data(), gradient.data());
    std::vector<float> want(gradient.size());
    for (int n = 0; n < batch; ++n)
      for (int c = 0; c < shape.channels; ++c)
        for (std::size_t i = 0; i < shape.area(); ++i) {
          const std::size_t at = place(shape, n, c, i);
          want[at] = before[at] + (slope[c] * x[at] + offset[c]);
        }
    EXPECT_EQ(gradient, want);
  }
}

}  // namespace
}  // namespace convoy::onednn
