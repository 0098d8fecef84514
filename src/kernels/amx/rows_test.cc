// Every layer but products against plain references in f64.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/amx/family.h"
#include "kernels/amx/op_trial.h"
#include "kernels/parallel.h"

namespace convoy::amx {

namespace {

using Doubles = std::vector<double>;

double rounding(double want) { return bf16_slack(want, 0.1); }

struct Case {
  Rng rng;
  OpTrial trial;
  Shape in;

  explicit Case(int number) : rng(3, Purpose::test, 0, std::uint64_t(number)) {
    do {
      in = {mostly_small(rng, 1, 300), between(rng, 1, 12), between(rng, 1, 12)};
      trial.spec.batch = mostly_small(rng, 1, 130);
    } while (in.count() * trial.spec.batch > 60'000);
    trial.spec.name = "layer";
    trial.spec.inputs = {in};
    trial.spec.output = in;
  }
  int batch() const { return trial.spec.batch; }
  std::size_t map() const { return in.area(); }
  void fill(std::size_t count_inputs = 1) {
    trial.spec.inputs.assign(count_inputs, in);
    for (std::size_t i = 0; i < count_inputs; ++i)
      trial.inputs.push_back(random_plain(rng, in.count() * batch()));
    trial.output_gradient = random_plain(rng, trial.spec.output.count() * batch());
  }
  std::string text() const { return fmt::format("{} batch {}", in.to_string(), batch()); }
};

void check_norm(Case& c) {
  OpTrial& t = c.trial;
  const bool relu = c.rng.below(2) == 0, residual = c.rng.below(3) == 0;
  t.spec.layer = BatchNorm{.relu = relu};
  t.spec.training = c.rng.below(4) != 0;
  c.fill(residual ? 2 : 1);
  const int channels = c.in.channels;
  for (std::size_t i = 0; i < t.inputs[0].size(); ++i)
    t.inputs[0][i] = round_bf16(t.inputs[0][i] + float(i / c.map() % channels % 3));
  t.weight = random_plain(c.rng, channels, 0.5f, 1);
  t.bias = random_plain(c.rng, channels);
  t.running_mean = random_plain(c.rng, channels);
  t.running_variance = random_plain(c.rng, channels, 0.1f, 1);
  t.give = c.rng.below(2) == 0;
  t.left = c.rng.below(2) == 0;
  const auto old_mean = t.running_mean, old_variance = t.running_variance;
  t.run();

  const double count = double(c.batch()) * double(c.map());
  const auto channel = [&](std::size_t i) { return i / c.map() % channels; };
  const std::size_t size = t.inputs[0].size();
  Doubles mean(channels), variance(channels), y(size);
  for (std::size_t i = 0; i < size; ++i) mean[channel(i)] += t.inputs[0][i] / count;
  for (std::size_t i = 0; i < size; ++i)
    variance[channel(i)] += std::pow(t.inputs[0][i] - mean[channel(i)], 2) / count;
  if (t.spec.training) {
    Doubles want_mean(channels), want_variance(channels);
    for (int k = 0; k < channels; ++k) {
      want_mean[k] = 0.9 * old_mean[k] + 0.1 * mean[k];
      want_variance[k] =
          0.9 * old_variance[k] + 0.1 * variance[k] * (count > 1 ? count / (count - 1) : 1);
    }
    EXPECT_LE(worst(t.running_mean, want_mean, [](std::size_t) { return 1e-5; }), 1);
    EXPECT_LE(worst(t.running_variance, want_variance, [](std::size_t) { return 1e-4; }), 1);
  } else {
    mean.assign(old_mean.begin(), old_mean.end());
    variance.assign(old_variance.begin(), old_variance.end());
  }
  const auto inverse = [&](std::size_t i) { return 1 / std::sqrt(variance[channel(i)] + 1e-5); };
  for (std::size_t i = 0; i < size; ++i) {
    y[i] = (t.inputs[0][i] - mean[channel(i)]) * inverse(i) * t.weight[channel(i)] +
           t.bias[channel(i)];
    if (residual) y[i] += t.inputs[1][i];
    if (relu) y[i] = std::max(0.0, y[i]);
  }
  // Sums in f32 move the mean a little. Where a channel has (nearly) one value only, 1 / deviation
  // magnifies what they lost.
  const auto slack = [&](std::size_t i) {
    return std::abs(y[i]) / 256 + 1e-6 * (1 + inverse(i) * inverse(i) * 0.05) +
           2e-5 * inverse(i) * (1 + std::abs(t.weight[channel(i)]));
  };
  EXPECT_LE(worst(t.output, y, slack), 1);
  if (!t.spec.training) return;

  Doubles db(channels), dw(channels), dx(size), dr(size), db_size(channels, 1e-6),
      dw_size(channels, 1e-6);
  for (std::size_t i = 0; i < size; ++i) {
    dr[i] = relu && !(t.output[i] > 0) ? 0 : t.output_gradient[i];
    const double normalized = (t.inputs[0][i] - mean[channel(i)]) * inverse(i);
    db[channel(i)] += dr[i];
    dw[channel(i)] += dr[i] * normalized;
    db_size[channel(i)] += std::abs(dr[i]);
    dw_size[channel(i)] += std::abs(dr[i]) * (3 * inverse(i) + std::abs(normalized));
  }
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t k = channel(i);
    const double normalized = (t.inputs[0][i] - mean[k]) * inverse(i);
    dx[i] = t.weight[k] * inverse(i) * (dr[i] - db[k] / count - normalized * dw[k] / count);
  }
  // The sign of a number next to zero may differ from that of its rounded output.
  EXPECT_LE(worst(t.bias_gradient, db, [&](std::size_t k) { return 1e-5 * db_size[k]; }), 1);
  EXPECT_LE(worst(t.weight_gradient, dw, [&](std::size_t k) { return 1e-5 * dw_size[k]; }), 1);
  EXPECT_LE(worst(t.input_gradients[0], dx,
                  [&](std::size_t i) {
                    const std::size_t k = channel(i);
                    return std::abs(dx[i]) / 256 +
                           2e-5 * std::abs(t.weight[k]) * inverse(i) *
                               (4 + dw_size[k] * inverse(i) / count) +
                           1e-30;
                  }),
            1);
  if (residual) {
    EXPECT_LE(worst(t.input_gradients[1], dr, [&](std::size_t) { return 1e-30; }), 1);
  }
}

// Window w of output o along one axis.
struct Span {
  int first, last;
};

void check_pool(Case& c) {
  OpTrial& t = c.trial;
  const int kind = int(c.rng.below(3)), kernel = between(c.rng, 1, 4),
            stride = between(c.rng, 1, 3), padding = between(c.rng, 0, kernel / 2);
  const bool ceil_mode = c.rng.below(2) == 0, count_padding = c.rng.below(2) == 0;
  Shape out{c.in.channels, between(c.rng, 1, c.in.height), between(c.rng, 1, c.in.width)};
  const auto size = [&](int n) {
    int result = (n + 2 * padding - kernel + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (ceil_mode && (result - 1) * stride >= n + padding) --result;
    return result;
  };
  if (kind < 2) {
    if (std::min(c.in.height, c.in.width) + 2 * padding < kernel) return;
    out.height = size(c.in.height);
    out.width = size(c.in.width);
  }
  const bool relu = kind == 0 && c.rng.below(2) == 0;
  if (kind == 0) t.spec.layer = MaxPool{kernel, stride, padding, ceil_mode, relu};
  if (kind == 1) t.spec.layer = AveragePool{kernel, stride, padding, ceil_mode, count_padding};
  if (kind == 2) t.spec.layer = AdaptiveAveragePool{out.height, out.width};
  t.spec.output = out;
  c.fill();
  if (c.rng.below(2) == 0) {                                // many equal numbers
    for (float& x : t.inputs[0]) x = std::round(x) + 0.0f;  // no -0: it counts as smaller than 0
  }
  t.run();

  const auto span = [&](int o, int n, int m) {
    return kind == 2
               ? Span{o * n / m, ((o + 1) * n + m - 1) / m}
               : Span{o * stride - padding, std::min(o * stride - padding + kernel, n + padding)};
  };
  Doubles y(t.output.size()), dx(t.inputs[0].size());
  std::size_t at = 0;
  for (std::size_t image = 0; image < std::size_t(c.batch()) * c.in.channels; ++image) {
    const float* x = t.inputs[0].data() + image * c.map();
    for (int oy = 0; oy < out.height; ++oy) {
      for (int ox = 0; ox < out.width; ++ox, ++at) {
        const Span v = span(oy, c.in.height, out.height), h = span(ox, c.in.width, out.width);
        const Span vi{std::max(0, v.first), std::min(c.in.height, v.last)},
            hi{std::max(0, h.first), std::min(c.in.width, h.last)};
        const bool whole = kind == 1 && count_padding;
        const double count = whole ? (v.last - v.first) * (h.last - h.first)
                                   : (vi.last - vi.first) * (hi.last - hi.first);
        int best = -1;
        for (int yy = vi.first; yy < vi.last; ++yy) {
          for (int xx = hi.first; xx < hi.last; ++xx) {
            const int place = yy * c.in.width + xx;
            if (best < 0 || x[place] > x[best]) best = place;
            if (kind == 0) continue;
            y[at] += x[place] / count;
            dx[image * c.map() + place] += t.output_gradient[at] / count;
          }
        }
        if (kind > 0 || (relu && x[best] <= 0)) continue;
        y[at] = x[best];
        dx[image * c.map() + best] += t.output_gradient[at];
      }
    }
  }
  EXPECT_LE(worst(t.output, y, [&](std::size_t i) { return kind == 0 ? 1e-30 : rounding(y[i]); }),
            1);
  EXPECT_LE(worst(t.input_gradients[0], dx, [&](std::size_t i) { return bf16_slack(dx[i], 0.5); }),
            1);
}

void check_relu_and_add(Case& c) {
  OpTrial& t = c.trial;
  const bool add = c.rng.below(2) == 0, relu = !add || c.rng.below(2) == 0;
  add ? t.spec.layer = Add{.relu = relu} : t.spec.layer = Relu{};
  t.spec.last = c.rng.below(5) == 0;  // takes the bridge to plain logits
  c.fill(add ? 2 : 1);
  t.run();
  Doubles y(t.output.size()), g(y);
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = t.inputs[0][i] + (add ? double(t.inputs[1][i]) : 0);
    g[i] = relu && !(y[i] > 0) ? 0 : t.output_gradient[i];
    if (relu) y[i] = std::max(0.0, y[i]);
  }
  EXPECT_LE(worst(t.output, y, [&](std::size_t i) { return bf16_slack(y[i], 0); }), 1);
  for (std::size_t i = 0; i < t.inputs.size() && !(t.spec.last && i > 0); ++i) {
    EXPECT_LE(worst(t.input_gradients[i], g, [](std::size_t) { return 1e-30; }), 1);
  }
}

void check_concat(Case& c) {
  OpTrial& t = c.trial;
  t.spec.layer = Concat{};
  t.spec.inputs.clear();
  t.spec.output.channels = 0;
  for (int i = between(c.rng, 1, 4); i > 0; --i) {
    t.spec.inputs.push_back({mostly_small(c.rng, 1, 100), c.in.height, c.in.width});
    t.inputs.push_back(random_plain(c.rng, t.spec.inputs.back().count() * c.batch()));
    t.spec.output.channels += t.spec.inputs.back().channels;
  }
  t.output_gradient = random_plain(c.rng, t.spec.output.count() * c.batch());
  t.run();
  std::size_t first = 0, wrong = 0;
  for (std::size_t k = 0; k < t.inputs.size(); ++k) {
    const std::size_t size = t.spec.inputs[k].count();
    for (std::size_t i = 0; i < t.inputs[k].size(); ++i) {
      const std::size_t at = i / size * t.spec.output.count() + first + i % size;
      wrong += t.output[at] != t.inputs[k][i];
      wrong += t.output_gradient[at] != t.input_gradients[k][i];
    }
    first += size;
  }
  EXPECT_EQ(wrong, 0u);
}

void check_local_response_norm(Case& c) {
  OpTrial& t = c.trial;
  const LocalResponseNorm layer{
      .size = between(c.rng, 1, 6), .alpha = 0.3f, .beta = 0.75f, .k = 1.5f};
  t.spec.layer = layer;
  c.fill();
  t.run();
  const int channels = c.in.channels, before = layer.size / 2, after = (layer.size - 1) / 2;
  Doubles y(t.output.size()), dx(y);
  Doubles d(channels);
  for (std::size_t n = 0; n < std::size_t(c.batch()); ++n) {
    for (std::size_t p = 0; p < c.map(); ++p) {
      const auto at = [&](int k) { return (n * channels + k) * c.map() + p; };
      const auto x = [&](int k) { return double(t.inputs[0][at(k)]); };
      for (int k = 0; k < channels; ++k) {
        d[k] = layer.k;
        for (int j = std::max(0, k - before); j <= std::min(channels - 1, k + after); ++j)
          d[k] += layer.alpha / layer.size * x(j) * x(j);
        y[at(k)] = x(k) * std::pow(d[k], -layer.beta);
      }
      for (int k = 0; k < channels; ++k) {
        const double g = t.output_gradient[at(k)];
        dx[at(k)] += g * std::pow(d[k], -layer.beta);
        for (int j = std::max(0, k - before); j <= std::min(channels - 1, k + after); ++j) {
          dx[at(j)] -= g * x(k) * layer.beta * std::pow(d[k], -layer.beta - 1) * layer.alpha /
                       layer.size * 2 * x(j);
        }
      }
    }
  }
  EXPECT_LE(worst(t.output, y, [&](std::size_t i) { return rounding(y[i]); }), 1);
  EXPECT_LE(worst(t.input_gradients[0], dx, [&](std::size_t i) { return bf16_slack(dx[i], 1); }),
            1);
}

void check_dropout(Case& c) {
  OpTrial& t = c.trial;
  t.spec.layer = Dropout{.rate = 0.25f};
  t.spec.seed = 7;
  c.fill();
  std::vector<std::uint32_t> samples(c.batch());
  for (auto& s : samples) s = c.rng.next() % 1000;
  t.key = {.epoch = 3, .samples = samples};
  t.run();
  std::size_t kept = 0, wrong = 0;
  for (std::size_t i = 0; i < t.output.size(); ++i) {
    const bool keep = t.output[i] != 0 || t.input_gradients[0][i] != 0;
    kept += keep;
    wrong +=
        std::abs(t.output[i] - (keep ? t.inputs[0][i] / 0.75 : 0)) > std::abs(t.inputs[0][i]) / 128;
    wrong += std::abs(t.input_gradients[0][i] - (keep ? t.output_gradient[i] / 0.75 : 0)) >
             std::abs(t.output_gradient[i]) / 128;
  }
  EXPECT_EQ(wrong, 0u);
  const double count = double(t.output.size());
  EXPECT_NEAR(double(kept) / count, 0.75, 5 * std::sqrt(0.1875 / count) + 0.01 / count);

  // A sample meets the same mask in a batch of its own.
  OpTrial alone;
  alone.spec = t.spec;
  alone.spec.batch = 1;
  const std::size_t last = std::size_t(c.batch()) - 1, size = c.in.count();
  alone.inputs.emplace_back(t.inputs[0].begin() + last * size, t.inputs[0].end());
  alone.output_gradient.assign(t.output_gradient.begin() + last * size, t.output_gradient.end());
  const std::uint32_t sample[] = {samples[last]};
  alone.key = {.epoch = 3, .samples = sample};
  alone.run();
  EXPECT_TRUE(std::equal(alone.output.begin(), alone.output.end(), t.output.begin() + last * size));
}

class AmxRows : public testing::TestWithParam<int> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AmxRows);

// Twelve cases each, two of every layer.
TEST_P(AmxRows, AgreesWithPlainReference) {
  constexpr void (*kChecks[])(Case&) = {
      check_norm,   check_pool, check_relu_and_add, check_concat, check_local_response_norm,
      check_dropout};
  for (int i = 0; i < 12 && !HasFailure(); ++i) {
    set_threads(GetParam() % 5 == 0 ? 2 : 1);  // more only costs time where other programs run
    Case c(GetParam() * 12 + i);
    SCOPED_TRACE(fmt::format("case {}, check {}: {}", GetParam() * 12 + i, i % 6, c.text()));
    kChecks[i % 6](c);
  }
}

INSTANTIATE_TEST_SUITE_P(Fast, AmxRows, testing::Range(0, is_usable() ? 20 : 0));
INSTANTIATE_TEST_SUITE_P(Slow, AmxRows, testing::Range(1000, is_usable() ? 1340 : 1000));

}  // namespace

}  // namespace convoy::amx
