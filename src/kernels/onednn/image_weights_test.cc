// Against the definition, in f64.
#include "kernels/onednn/image_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "kernels/parallel.h"

namespace convoy::onednn {
namespace {

struct Trial {
  ImageConvolution c;
  int blocks = (c.target.channels + 7) / 8;
  std::vector<float> source, gradient, weights, bias;

  explicit Trial(const ImageConvolution& convolution)
      : c(convolution),
        source(c.source.count() * c.batch),
        gradient(c.target.area() * blocks * 8 * c.batch),
        weights(std::size_t(c.target.channels) * c.source.channels * c.kernel * c.kernel),
        bias(c.target.channels) {
    Rng rng(1, Purpose::test);
    for (float& value : source) value = rng.normal();
    for (std::size_t i = 0; i < gradient.size(); ++i)
      if (int(i / 8 / c.target.area() % blocks * 8 + i % 8) < c.target.channels)
        gradient[i] = rng.normal();
  }

  void run() {
    std::vector<double> scratch(image_weights_bytes(c) / sizeof(double) + 1);
    image_weights(c, source.data(), gradient.data(), weights.data(), bias,
                  reinterpret_cast<std::byte*>(scratch.data()));
  }

  double gradient_at(int n, int o, int y, int x) const {
    return gradient[(((std::size_t(n) * blocks + o / 8) * c.target.height + y) * c.target.width +
                     x) *
                        8 +
                    o % 8];
  }
  double source_at(int n, int i, int y, int x) const {
    if (y < 0 || x < 0 || y >= c.source.height || x >= c.source.width) return 0;
    return source[((std::size_t(n) * c.source.channels + i) * c.source.height + y) *
                      c.source.width +
                  x];
  }
};

const std::vector<ImageConvolution> kSizes = {
    {5, {1, 28, 28}, {20, 24, 24}, 5, 1, 0}, {3, {1, 12, 9}, {32, 10, 7}, 3, 1, 0},
    {2, {3, 9, 11}, {16, 9, 11}, 3, 1, 1},   {2, {3, 31, 30}, {12, 7, 7}, 11, 4, 2},
    {2, {3, 18, 17}, {64, 9, 9}, 7, 2, 3},   {1, {2, 3, 3}, {5, 5, 5}, 5, 1, 3},
    {3, {1, 2, 2}, {8, 2, 2}, 7, 1, 3},      {2, {4, 10, 10}, {9, 4, 4}, 3, 2, 0}};

TEST(ImageWeights, AreTheSumsOfTheDefinition) {
  for (const ImageConvolution& c : kSizes) {
    SCOPED_TRACE(c.source.to_string() + " to " + c.target.to_string());
    Trial trial(c);
    trial.run();
    std::size_t at = 0;
    for (int o = 0; o < c.target.channels; ++o) {
      double bias = 0;
      for (int n = 0; n < c.batch; ++n)
        for (int y = 0; y < c.target.height; ++y)
          for (int x = 0; x < c.target.width; ++x) bias += trial.gradient_at(n, o, y, x);
      EXPECT_NEAR(trial.bias[o], bias, 1e-4);
      for (int i = 0; i < c.source.channels; ++i)
        for (int tap = 0; tap < c.kernel * c.kernel; ++tap, ++at) {
          double sum = 0;
          for (int n = 0; n < c.batch; ++n)
            for (int y = 0; y < c.target.height; ++y)
              for (int x = 0; x < c.target.width; ++x)
                sum += trial.gradient_at(n, o, y, x) *
                       trial.source_at(n, i, y * c.stride - c.padding + tap / c.kernel,
                                       x * c.stride - c.padding + tap % c.kernel);
          ASSERT_NEAR(trial.weights[at], sum, 1e-5 * (30 + std::abs(sum))) << at;
        }
    }
  }
}

TEST(ImageWeights, NoBitDependsOnThreads) {
  const int before = threads();
  set_threads(1);
  Trial one(kSizes[0]);
  one.run();
  set_threads(3);
  Trial three(kSizes[0]);
  three.run();
  set_threads(before);
  EXPECT_EQ(one.weights, three.weights);
  EXPECT_EQ(one.bias, three.bias);
}

}  // namespace
}  // namespace convoy::onednn
