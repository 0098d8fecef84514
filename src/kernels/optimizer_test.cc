#include "kernels/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "kernels/parallel.h"

namespace convoy {
namespace {

std::vector<float> random_floats(std::size_t count, std::uint64_t stream) {
  Rng rng(7, Purpose::test, 0, stream);
  std::vector<float> floats(count);
  for (float& x : floats) x = rng.normal();
  return floats;
}

constexpr std::size_t kCount = 1003;  // not a multiple of any vector

TEST(OptimizerKernels, SgdFollowsItsFormula) {
  auto w = random_floats(kCount, 1);
  const auto old = w, g = random_floats(kCount, 2);
  sgd_step(w, g, 0.1f, 0.01f);
  for (std::size_t i = 0; i < kCount; ++i)
    EXPECT_NEAR(w[i], old[i] - 0.1 * (g[i] + 0.01 * old[i]), 1e-6);
}

TEST(OptimizerKernels, MomentumNesterovAndLarsFollowTheirFormulas) {
  const auto w0 = random_floats(kCount, 1), g = random_floats(kCount, 2),
             v0 = random_floats(kCount, 3);
  const MomentumStep step{.rate = 0.1f, .momentum = 0.9f, .decay = 0.01f};
  auto w1 = w0, v1 = v0, w2 = w0, v2 = v0, w3 = w0, v3 = v0;
  momentum_step(w1, g, v1, step);
  nesterov_step(w2, g, v2, step);
  lars_step(w3, g, v3, step);
  for (std::size_t i = 0; i < kCount; ++i) {
    const double d = g[i] + 0.01 * w0[i];
    const double v = 0.9 * v0[i] + d;
    EXPECT_NEAR(v1[i], v, 1e-5);
    EXPECT_NEAR(w1[i], w0[i] - 0.1 * v, 1e-5);
    EXPECT_NEAR(v2[i], v, 1e-5);
    EXPECT_NEAR(w2[i], w0[i] - 0.1 * (d + 0.9 * v), 1e-5);
    EXPECT_NEAR(v3[i], 0.9 * v0[i] + 0.1 * d, 1e-5);
    EXPECT_NEAR(w3[i], w0[i] - (0.9 * v0[i] + 0.1 * d), 1e-5);
  }
}

TEST(OptimizerKernels, AdamFollowsItsFormulaOverSteps) {
  auto w = random_floats(kCount, 1);
  std::vector<float> m(kCount), v(kCount);
  std::vector<double> w_ref(w.begin(), w.end()), m_ref(kCount), v_ref(kCount);
  for (int update = 1; update <= 5; ++update) {
    const auto g = random_floats(kCount, 10 + update);
    adam_step(w, g, m, v, {.rate = 0.01f, .decay = 0.1f, .update = update});
    for (std::size_t i = 0; i < kCount; ++i) {
      const double d = g[i] + 0.1 * w_ref[i];
      m_ref[i] = 0.9 * m_ref[i] + 0.1 * d;
      v_ref[i] = 0.999 * v_ref[i] + 0.001 * d * d;
      const double m_hat = m_ref[i] / (1 - std::pow(0.9, update));
      const double v_hat = v_ref[i] / (1 - std::pow(0.999, update));
      w_ref[i] -= 0.01 * m_hat / (std::sqrt(v_hat) + 1e-8);
    }
  }
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_NEAR(w[i], w_ref[i], 2e-5) << i;
}

// The first step of Adam goes by the rate whatever the gradient's size: the sign of a working bias
// correction.
TEST(OptimizerKernels, AdamFirstStepHasTheLengthOfTheRate) {
  std::vector<float> w(3), m(3), v(3);
  const std::vector<float> g = {1e-3f, -5.0f, 200.0f};
  adam_step(w, g, m, v, {.rate = 0.01f});
  EXPECT_NEAR(w[0], -0.01, 1e-6);
  EXPECT_NEAR(w[1], 0.01, 1e-6);
  EXPECT_NEAR(w[2], -0.01, 1e-6);
}

// Cuts at odd places put other elements into the vector loop and into its tail.
TEST(OptimizerKernels, CutsDoNotChangeBits) {
  const auto g = random_floats(kCount, 2);
  auto whole = random_floats(kCount, 1), cut = whole;
  std::vector<float> m1(kCount), v1(kCount), m2(kCount), v2(kCount);
  const AdamStep step{.rate = 0.01f, .decay = 0.1f, .update = 3};
  adam_step(whole, g, m1, v1, step);
  const std::size_t bounds[] = {0, 1, 14, 500, 777, kCount};
  for (std::size_t i = 0; i + 1 < std::size(bounds); ++i) {
    const std::size_t at = bounds[i], count = bounds[i + 1] - at;
    adam_step(std::span(cut).subspan(at, count), std::span(g).subspan(at, count),
              std::span(m2).subspan(at, count), std::span(v2).subspan(at, count), step);
  }
  EXPECT_EQ(whole, cut);
  EXPECT_EQ(m1, m2);
  EXPECT_EQ(v1, v2);
}

TEST(OptimizerKernels, NormsAreRightAndIndependentOfThreads) {
  const std::size_t count = 300'001;
  const auto w = random_floats(count, 1), g = random_floats(count, 2);
  double w_sum = 0, g_sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    w_sum += double(w[i]) * w[i];
    g_sum += double(g[i]) * g[i];
  }
  const int before = threads();
  set_threads(1);
  const Norms one = norms(w, g);
  set_threads(3);
  const Norms three = norms(w, g);
  set_threads(before);
  EXPECT_NEAR(one.values, std::sqrt(w_sum), 1e-9 * std::sqrt(w_sum));
  EXPECT_NEAR(one.gradients, std::sqrt(g_sum), 1e-9 * std::sqrt(g_sum));
  EXPECT_EQ(one.values, three.values);
  EXPECT_EQ(one.gradients, three.gradients);
}

TEST(OptimizerKernels, NormsOfLargeNumbersDoNotOverflow) {
  const std::vector<float> large(100, 1e30f), none(100);
  const Norms length = norms(large, none);
  EXPECT_NEAR(length.values / 1e31, 1.0, 1e-6);
  EXPECT_EQ(length.gradients, 0.0);
  EXPECT_EQ(norms({}, {}).values, 0.0);
}

}  // namespace
}  // namespace convoy
