// Batch norm whose statistics are shared, against one over all samples.
#include <gtest/gtest.h>

#include "kernels/amx/family.h"
#include "kernels/amx/op_trial.h"

namespace convoy::amx {

namespace {

// As if a second worker had exactly the same samples.
class Twin : public StatisticsExchange {
 public:
  std::vector<std::size_t> calls;  // how many values each had
  void sum(std::span<double> values) override {
    calls.push_back(values.size());
    for (double& v : values) v *= 2;
  }
};

OpTrial trial_of(bool relu, bool residual) {
  Rng rng(5, Purpose::test);
  OpTrial t;
  const Shape shape{40, 3, 5};
  t.spec.layer = BatchNorm{.relu = relu};
  t.spec.name = "norm";
  t.spec.output = shape;
  t.spec.inputs.assign(residual ? 2 : 1, shape);
  t.spec.batch = 21;
  for (std::size_t i = 0; i < t.spec.inputs.size(); ++i)
    t.inputs.push_back(random_plain(rng, shape.count() * t.spec.batch, 1, 0.5f));
  t.output_gradient = random_plain(rng, shape.count() * t.spec.batch);
  t.weight = random_plain(rng, shape.channels, 0.5f, 1);
  t.bias = random_plain(rng, shape.channels);
  t.running_mean = random_plain(rng, shape.channels);
  t.running_variance = random_plain(rng, shape.channels, 0.1f, 1);
  return t;
}

TEST(AmxNormExchange, ATwinChangesOnlyTheCount) {
  if (!is_usable()) return;  // amx_avx2_test runs it everywhere
  for (const bool relu : {false, true}) {
    for (const bool residual : {false, true}) {
      OpTrial alone = trial_of(relu, residual), shared = trial_of(relu, residual);
      const std::vector<float> old = alone.running_variance;
      Twin twin;
      shared.spec.exchange = &twin;
      alone.run();
      shared.run();
      EXPECT_EQ(twin.calls, (std::vector<std::size_t>{81, 80}));
      EXPECT_EQ(shared.output, alone.output);
      EXPECT_EQ(shared.input_gradients, alone.input_gradients);
      EXPECT_EQ(shared.weight_gradient, alone.weight_gradient) << "this worker's part alone";
      EXPECT_EQ(shared.bias_gradient, alone.bias_gradient) << "this worker's part alone";
      EXPECT_EQ(shared.running_mean, alone.running_mean);
      const double n = 21 * 15;
      for (std::size_t c = 0; c < old.size(); ++c) {
        const double moved = alone.running_variance[c] - 0.9 * old[c];
        EXPECT_NEAR(shared.running_variance[c] - 0.9 * old[c],
                    moved * (n - 1) / n * (2 * n) / (2 * n - 1), 1e-6);
      }
    }
  }
}

// Others' sums move this worker's outputs and input gradients.
class Offset : public StatisticsExchange {
 public:
  void sum(std::span<double> values) override {
    for (double& v : values) v += 100;
  }
};

TEST(AmxNormExchange, OthersSumsAreUsedInBothDirections) {
  if (!is_usable()) return;  // amx_avx2_test runs it everywhere
  OpTrial alone = trial_of(false, false), shared = trial_of(false, false);
  Offset offset;
  shared.spec.exchange = &offset;
  alone.run();
  shared.run();
  const Shape shape = alone.spec.output;
  const double mine = 21.0 * double(shape.area()), count = mine + 100;
  for (int c = 0; c < shape.channels; c += 7) {
    double sum = 100, squares = 100, of_g = 0, of_normalized = 0;
    const auto each = [&](auto&& body) {
      for (int n = 0; n < 21; ++n)
        for (std::size_t i = 0; i < shape.area(); ++i)
          body(n * shape.count() + c * shape.area() + i);
    };
    each([&](std::size_t at) {
      const double x = shared.inputs[0][at];
      sum += x;
      squares += x * x;
    });
    const double mean = sum / count, inverse = 1 / std::sqrt(squares / count - mean * mean + 1e-5);
    each([&](std::size_t at) {
      const double normalized = (shared.inputs[0][at] - mean) * inverse;
      EXPECT_NEAR(shared.output[at], normalized * shared.weight[c] + shared.bias[c], 0.03);
      of_g += shared.output_gradient[at];
      of_normalized += shared.output_gradient[at] * normalized;
    });
    EXPECT_NEAR(shared.bias_gradient[c], of_g, 1e-3);
    EXPECT_NEAR(shared.weight_gradient[c], of_normalized, 1e-2);
    each([&](std::size_t at) {
      const double normalized = (shared.inputs[0][at] - mean) * inverse;
      EXPECT_NEAR(shared.input_gradients[0][at],
                  shared.weight[c] * inverse *
                      (shared.output_gradient[at] - (of_g + 100) / count -
                       normalized * (of_normalized + 100) / count),
                  0.03);
    });
  }
}

}  // namespace

}  // namespace convoy::amx
