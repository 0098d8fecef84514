// Convolution and dense layers against plain sums in f64 over the same bf16 numbers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/amx/family.h"
#include "kernels/amx/op_trial.h"
#include "kernels/amx/plain_product.h"
#include "kernels/parallel.h"

namespace convoy::amx {

namespace {

// Sums that were taken over the first input gradient, against that gradient as it came out.
void check_taken(const OpTrial& t) {
  const std::vector<float>& g = t.input_gradients[0];
  const std::size_t channels = t.spec.inputs[0].channels, area = t.spec.inputs[0].area();
  std::vector<double> want(2 * channels), size(want);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const std::size_t channel = i / area % channels;
    const double product = t.factor.empty() ? 0 : double(g[i]) * t.factor[i];
    want[channel] += g[i];
    size[channel] += std::abs(g[i]);
    want[channels + channel] += product;
    size[channels + channel] += std::abs(product);
  }
  ASSERT_EQ(t.taken.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(t.taken[i], want[i], size[i] * 1e-5 + 1e-30) << i;
}

void check_product(OpTrial& t, const Plain& p, bool bias, bool relu) {
  t.run();
  const std::size_t outputs = t.output.size(), map = std::size_t(p.out_height) * p.out_width;
  std::vector<double> y(outputs), y_size(outputs);
  for (std::size_t i = 0; bias && i < outputs; ++i)
    y_size[i] = std::abs(y[i] = t.bias[i / map % p.out]);
  p.for_products([&](std::size_t x, std::size_t w, std::size_t o) {
    const double product = double(t.inputs[0][x]) * t.weight[w];
    y[o] += product;
    y_size[o] += std::abs(product);
  });
  for (std::size_t i = 0; relu && i < outputs; ++i) y[i] = std::max(0.0, y[i]);
  EXPECT_LE(worst(t.output, y,
                  [&](std::size_t i) {
                    return t.spec.last ? y_size[i] * 1e-5 + 1e-30 : bf16_slack(y[i], y_size[i]);
                  }),
            1);
  if (!t.spec.training) return;

  std::vector<double> dx(t.inputs[0].size()), dx_size(dx), dw(t.weight.size()), dw_size(dw),
      db(p.out), db_size(db);
  if (!t.earlier_gradient.empty()) {
    std::copy(t.earlier_gradient.begin(), t.earlier_gradient.end(), dx.begin());
  }
  std::vector<float> g = t.output_gradient;
  for (std::size_t i = 0; i < outputs; ++i) {
    if (relu && !(t.output[i] > 0)) g[i] = 0;
    db[i / map % p.out] += g[i];
    db_size[i / map % p.out] += std::abs(g[i]);
  }
  p.for_products([&](std::size_t x, std::size_t w, std::size_t o) {
    const double of_x = double(g[o]) * t.weight[w], of_w = double(g[o]) * t.inputs[0][x];
    dx[x] += of_x;
    dx_size[x] += std::abs(of_x);
    dw[w] += of_w;
    dw_size[w] += std::abs(of_w);
  });
  if (t.take) {
    const std::size_t channels = t.spec.inputs[0].channels, area = t.spec.inputs[0].area();
    for (std::size_t i = 0; t.take_behind_relu && i < dx.size(); ++i) {
      const std::size_t channel = i / area % channels;
      const float sign = t.signs.empty()
                             ? t.inputs[0][i]
                             : std::fma(t.factor[i], t.signs[channel], t.signs[channels + channel]);
      if (!(sign > 0)) dx[i] = 0;
    }
    check_taken(t);
  }
  if (!t.spec.first) {
    EXPECT_LE(worst(t.input_gradients[0], dx,
                    [&](std::size_t i) { return bf16_slack(dx[i], dx_size[i]); }),
              1);
  }
  EXPECT_LE(worst(t.weight_gradient, dw, [&](std::size_t i) { return dw_size[i] * 1e-5 + 1e-30; }),
            1);
  if (bias) {
    EXPECT_LE(worst(t.bias_gradient, db, [&](std::size_t i) { return db_size[i] * 1e-5 + 1e-30; }),
              1);
  }
  EXPECT_EQ(t.padding_gradients, 0u);
}

void fill(OpTrial& t, Rng& rng, std::size_t weights, int out, bool bias) {
  t.inputs.push_back(random_plain(rng, t.spec.inputs[0].count() * t.spec.batch));
  t.weight = random_plain(rng, weights);
  if (bias) t.bias = random_plain(rng, out);
  t.output_gradient = random_plain(rng, t.spec.output.count() * t.spec.batch);
  t.spec.training = rng.below(8) != 0;
  if (rng.below(3) == 0) t.earlier_gradient = random_plain(rng, t.inputs[0].size());
  t.give = rng.below(3) == 0;
  t.take = rng.below(3) == 0;
  t.take_behind_relu = rng.below(2) == 0;
  if (rng.below(2) == 0) t.factor = random_plain(rng, t.inputs[0].size());
  t.left = rng.below(3) == 0;
  if (!t.factor.empty() && rng.below(2) == 0)
    t.signs = random_plain(rng, 2 * std::size_t(t.spec.inputs[0].channels));
}

void convolution_case(Rng& rng, std::size_t most_products) {
  Plain p{};
  Convolution layer;
  bool first = false;
  do {
    p = {.batch = mostly_small(rng, 1, 130),
         .in = mostly_small(rng, 1, 300),
         .height = between(rng, 1, 13),
         .width = between(rng, 1, 13),
         .out = mostly_small(rng, 1, 300),
         .out_height = 0,
         .out_width = 0,
         .kernel_h = between(rng, 1, 5),
         .kernel_w = 0,
         .stride = between(rng, 1, 3),
         .padding = 0,
         .groups = 1};
    p.kernel_w = p.kernel_h;
    p.padding = between(rng, 0, p.kernel_h / 2 + 1);
    if (rng.below(10) == 0) {
      p.groups = between(rng, 2, 4);
      p.in = (p.in + p.groups - 1) / p.groups * p.groups;
      p.out = (p.out + p.groups - 1) / p.groups * p.groups;
    }
    p.out_height = (p.height + 2 * p.padding - p.kernel_h) / p.stride + 1;
    p.out_width = (p.width + 2 * p.padding - p.kernel_w) / p.stride + 1;
    first = rng.below(6) == 0;
    const int trim = rng.below(6) == 0;  // a last row and column that nobody reads
    p.out_height -= trim;
    p.out_width -= trim;
  } while (p.height + 2 * p.padding < p.kernel_h || p.width + 2 * p.padding < p.kernel_w ||
           p.out_height < 1 || p.out_width < 1 || p.products() > most_products);
  OpTrial t;
  layer = {.channels = p.out,
           .kernel = p.kernel_h,
           .stride = p.stride,
           .padding = p.padding,
           .groups = p.groups,
           .bias = rng.below(2) == 0,
           .relu = rng.below(3) == 0};
  t.spec = {.layer = layer,
            .name = "conv",
            .inputs = {{p.in, p.height, p.width}},
            .output = {p.out, p.out_height, p.out_width},
            .batch = p.batch,
            .first = first};
  fill(t, rng, std::size_t(p.out) * p.in / p.groups * p.kernel_h * p.kernel_w, p.out, layer.bias);
  SCOPED_TRACE(
      fmt::format("batch {} in {}x{}x{} out {}x{}x{} kernel {} stride {} padding {} groups {} bias "
                  "{} relu {} first {} training {}",
                  p.batch, p.in, p.height, p.width, p.out, p.out_height, p.out_width, p.kernel_h,
                  p.stride, p.padding, p.groups, layer.bias, layer.relu, first, t.spec.training));
  check_product(t, p, layer.bias, layer.relu);
}

void dense_case(Rng& rng, std::size_t most_products) {
  Plain p{};
  do {
    p = {.batch = mostly_small(rng, 1, 130),
         .in = mostly_small(rng, 1, 300),
         .height = mostly_small(rng, 1, 6),
         .width = mostly_small(rng, 1, 6),
         .out = mostly_small(rng, 1, 300),
         .out_height = 1,
         .out_width = 1,
         .kernel_h = 0,
         .kernel_w = 0,
         .stride = 1,
         .padding = 0,
         .groups = 1};
    p.kernel_h = p.height;
    p.kernel_w = p.width;
  } while (p.products() > most_products);
  OpTrial t;
  const Dense layer{.features = p.out, .bias = rng.below(4) != 0, .relu = rng.below(3) == 0};
  t.spec = {.layer = layer,
            .name = "dense",
            .inputs = {{p.in, p.height, p.width}},
            .output = {p.out, 1, 1},
            .batch = p.batch,
            .first = rng.below(4) == 0,
            .last = !layer.relu && rng.below(3) == 0};
  fill(t, rng, std::size_t(p.out) * p.in * p.height * p.width, p.out, layer.bias);
  SCOPED_TRACE(
      fmt::format("batch {} in {}x{}x{} out {} bias {} relu {} first {} last {} training {}",
                  p.batch, p.in, p.height, p.width, p.out, layer.bias, layer.relu, t.spec.first,
                  t.spec.last, t.spec.training));
  check_product(t, p, layer.bias, layer.relu);
}

class AmxProduct : public testing::TestWithParam<int> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AmxProduct);

// Ten cases each; every third is dense.
TEST_P(AmxProduct, AgreesWithPlainSums) {
  for (int i = 0; i < 10 && !HasFailure(); ++i) {
    const int number = GetParam() * 10 + i;
    SCOPED_TRACE(fmt::format("case {}", number));
    set_threads(number % 5 == 0 ? 2 : 1);  // more only costs time where other programs run
    Rng rng(1, Purpose::test, 0, std::uint64_t(number));
    number % 3 == 0 ? dense_case(rng, 1'000'000) : convolution_case(rng, 1'000'000);
  }
}

INSTANTIATE_TEST_SUITE_P(Fast, AmxProduct, testing::Range(0, is_usable() ? 30 : 0));
INSTANTIATE_TEST_SUITE_P(Slow, AmxProduct, testing::Range(1000, is_usable() ? 1600 : 1000));

// Maps large enough for several chunks of weight gradients.
class AmxLargeProduct : public testing::TestWithParam<int> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AmxLargeProduct);

TEST_P(AmxLargeProduct, AgreesWithPlainSums) {
  constexpr int kBatch[] = {3, 8, 16, 33};
  const int batch = kBatch[GetParam() % 4], out = GetParam() < 4 ? 40 : 130;
  const Plain p{.batch = batch,
                .in = 5,
                .height = 41,
                .width = 38,
                .out = out,
                .out_height = 41,
                .out_width = 38,
                .kernel_h = 3,
                .kernel_w = 3,
                .stride = 1,
                .padding = 1,
                .groups = 1};
  OpTrial t;
  t.spec = {.layer = Convolution{.channels = out, .kernel = 3, .padding = 1, .bias = true},
            .name = "conv",
            .inputs = {{5, 41, 38}},
            .output = {out, 41, 38},
            .batch = batch};
  Rng rng(2, Purpose::test, 0, std::uint64_t(GetParam()));
  fill(t, rng, std::size_t(out) * 5 * 9, out, true);
  t.spec.training = true;
  check_product(t, p, true, false);
}

INSTANTIATE_TEST_SUITE_P(Fast, AmxLargeProduct, testing::Range(0, is_usable() ? 2 : 0));
INSTANTIATE_TEST_SUITE_P(Slow, AmxLargeProduct, testing::Range(2, is_usable() ? 8 : 2));

}  // namespace

}  // namespace convoy::amx
