// Winograd's algorithm against plain sums in f64 over the same bf16 numbers.
#include "kernels/amx/winograd.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/amx/op_trial.h"
#include "kernels/amx/plain_product.h"
#include "kernels/parallel.h"

namespace convoy::amx {

namespace {

// Sums by their definition, and sums of magnitudes.
struct Sums {
  std::vector<double> value, size;
  explicit Sums(std::size_t count) : value(count), size(count) {}
  void add(std::size_t at, double product) {
    value[at] += product;
    size[at] += std::abs(product);
  }
  // What bf16 and f32 sums may lose, as for tile products; and, since here every output of a tile
  // is made of all its inputs, a little of the largest.
  bool allow(const std::vector<float>& got) const {
    const double little = 2e-6 * *std::max_element(size.begin(), size.end());
    return worst(got, value,
                 [&](std::size_t i) { return bf16_slack(value[i], size[i]) + little; }) <= 1;
  }
};

class Trial {
 public:
  Plain p;
  Shape in, out;
  Layout source, target;
  WinogradProduct forward;
  std::vector<float> x, w, dy, bias;  // plain
  std::vector<float> stored;

  Trial(const Plain& plain, Rng& rng)
      : p(plain),
        in{p.in, p.height, p.width},
        out{p.out, p.out_height, p.out_width},
        source(layout_of(in, p.batch)),
        target(layout_of(out, p.batch)),
        forward{.source = source,
                .target = target,
                .height = p.height,
                .width = p.width,
                .out_height = p.out_height,
                .out_width = p.out_width,
                .before = p.padding,
                .slots = threads()},
        x(random_plain(rng, in.count() * p.batch)),
        w(random_plain(rng, std::size_t(p.in) * p.out * 9)),
        dy(random_plain(rng, out.count() * p.batch)),
        bias(random_plain(rng, p.out)) {
    const auto layout = make_product_weights(spec());
    stored.resize(layout->stored_count());
    layout->from_plain(w.data(), stored.data());
  }

  OpSpec spec() const {
    return {.layer = Convolution{.channels = p.out, .kernel = 3, .padding = p.padding},
            .name = "conv",
            .inputs = {in},
            .output = out,
            .batch = p.batch};
  }
  WeightShape shape() const { return {9, source.planes, target.planes}; }

  static Garbage value_of(const Layout& l, const std::vector<float>& plain) {
    Garbage made(l.bytes());
    import_plain(l, plain.data(), value(made.get()));
    return made;
  }
  static std::vector<float> plain_of(const Layout& l, const Garbage& made, std::size_t count) {
    expect_padding_zero(l, made.get());
    std::vector<float> plain(count);
    export_plain(l, value(made.get()), plain.data());
    return plain;
  }

  // Forward, or from the target to the source.
  void run(bool backward, const Garbage& from, const Finish& finish, Garbage& to) const {
    const WinogradProduct product = backward ? winograd_backward(forward) : forward;
    Garbage weights(winograd_weights_size(shape()) * sizeof(float));
    Garbage scratch(winograd_scratch_size(product) * sizeof(float));
    auto* points = reinterpret_cast<float*>(weights.get());
    make_winograd_weights(shape(), stored.data(), backward, points);
    run_winograd(product, value(from.get()), points, value(to.get()), finish,
                 reinterpret_cast<float*>(scratch.get()));
  }
};

void expect_sums(const std::vector<float>& g, const std::vector<float>& factor, const Shape& shape,
                 int lanes, const double* got, double tolerance) {
  Sums want(2 * std::size_t(shape.channels));
  for (std::size_t i = 0; i < g.size(); ++i) {
    const std::size_t channel = i / shape.area() % shape.channels;
    want.add(channel, g[i]);
    want.add(shape.channels + channel, double(g[i]) * factor[i]);
  }
  for (int c = 0; c < 2 * shape.channels; ++c)
    EXPECT_NEAR(got[c < shape.channels ? c : lanes + c - shape.channels], want.value[c],
                want.size[c] * tolerance + 1e-30)
        << c;
}

void check_forward(const Trial& t, bool relu) {
  Sums y(t.dy.size());
  t.p.for_products(
      [&](std::size_t x, std::size_t w, std::size_t o) { y.add(o, double(t.x[x]) * t.w[w]); });
  const Garbage x = Trial::value_of(t.source, t.x);
  Garbage plain(t.target.bytes()), biased(t.target.bytes()), sums(sums_bytes(t.target));
  auto* partial = reinterpret_cast<double*>(sums.get());
  t.run(false, x, {.kind = Finish::norm_sums, .partial = partial}, plain);
  const std::vector<float> got = Trial::plain_of(t.target, plain, t.dy.size());
  EXPECT_TRUE(y.allow(got));
  // The sums are of numbers that are not rounded yet.
  expect_sums(got, got, t.out, t.target.lanes(), partial, 0.01);

  std::vector<float> lanes(t.target.lanes());
  std::copy(t.bias.begin(), t.bias.end(), lanes.begin());
  t.run(false, x, {.kind = Finish::bias, .bias_lanes = lanes.data(), .relu = relu}, biased);
  for (std::size_t i = 0; i < y.value.size(); ++i) {
    const double b = t.bias[i / t.out.area() % t.p.out];
    y.value[i] = relu ? std::max(0.0, y.value[i] + b) : y.value[i] + b;
    y.size[i] += std::abs(b);
  }
  EXPECT_TRUE(y.allow(Trial::plain_of(t.target, biased, t.dy.size())));
}

void check_data(const Trial& t, Rng& rng) {
  Sums dx(t.x.size());
  t.p.for_products(
      [&](std::size_t x, std::size_t w, std::size_t o) { dx.add(x, double(t.dy[o]) * t.w[w]); });
  const Garbage dy = Trial::value_of(t.target, t.dy);
  Garbage plain(t.source.bytes()), sums(sums_bytes(t.source));
  t.run(true, dy, {}, plain);
  EXPECT_TRUE(dx.allow(Trial::plain_of(t.source, plain, t.x.size())));

  const std::vector<float> earlier = random_plain(rng, t.x.size());
  const std::vector<float> factor = random_plain(rng, t.x.size());
  Garbage added = Trial::value_of(t.source, earlier);
  const Garbage signs = Trial::value_of(t.source, t.x);
  const Garbage factors = Trial::value_of(t.source, factor);
  auto* partial = reinterpret_cast<double*>(sums.get());
  t.run(true, dy,
        {.kind = Finish::gradient,
         .partial = partial,
         .added = true,
         .value = value(static_cast<const std::byte*>(signs.get())),
         .factor = value(static_cast<const std::byte*>(factors.get()))},
        added);
  for (std::size_t i = 0; i < t.x.size(); ++i)
    dx.value[i] = t.x[i] > 0 ? dx.value[i] + earlier[i] : 0;
  const std::vector<float> got = Trial::plain_of(t.source, added, t.x.size());
  EXPECT_TRUE(dx.allow(got));
  expect_sums(got, factor, t.in, t.source.lanes(), partial, 1e-5);
}

std::vector<float> weight_gradient(const Trial& t) {
  const Garbage x = Trial::value_of(t.source, t.x), dy = Trial::value_of(t.target, t.dy);
  Garbage scratch(winograd_gradient_scratch_size(t.forward) * sizeof(float));
  std::vector<float> made(t.stored.size(), NAN);
  run_winograd_gradient(t.forward, value(x.get()), value(dy.get()),
                        reinterpret_cast<float*>(scratch.get()), {.sums = made.data()});
  return made;
}

void check_weights(const Trial& t) {
  Sums dw(t.w.size());
  t.p.for_products(
      [&](std::size_t x, std::size_t w, std::size_t o) { dw.add(w, double(t.dy[o]) * t.x[x]); });
  const std::vector<float> made = weight_gradient(t);
  std::vector<float> plain(t.w.size());
  make_product_weights(t.spec())->to_plain(made.data(), plain.data());
  EXPECT_LE(worst(plain, dw.value, [&](std::size_t i) { return dw.size[i] * 1e-5 + 1e-30; }), 1);
}

Plain random_size(Rng& rng, std::size_t most_products) {
  Plain p{};
  do {
    p = {.batch = mostly_small(rng, 1, 130),
         .in = mostly_small(rng, 1, 300),
         .height = between(rng, 3, 19),
         .width = between(rng, 3, 19),
         .out = mostly_small(rng, 1, 300),
         .out_height = 0,
         .out_width = 0,
         .kernel_h = 3,
         .kernel_w = 3,
         .stride = 1,
         .padding = between(rng, 0, 2),
         .groups = 1};
    const int trim = rng.below(6) == 0;  // a last row and column that nobody reads
    p.out_height = p.height + 2 * p.padding - 2 - trim;
    p.out_width = p.width + 2 * p.padding - 2 - trim;
  } while (p.out_height < 4 || p.out_width < 4 || p.products() > most_products);
  return p;
}

class AmxWinograd : public testing::TestWithParam<int> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AmxWinograd);

TEST_P(AmxWinograd, AgreesWithPlainSums) {
  for (int i = 0; i < 5 && !HasFailure(); ++i) {
    const int number = GetParam() * 5 + i;
    set_threads(number % 5 == 0 ? 2 : 1);
    Rng rng(3, Purpose::test, 0, std::uint64_t(number));
    const Plain p = random_size(rng, 2'000'000);
    SCOPED_TRACE(fmt::format("case {}: batch {} in {}x{}x{} out {}x{}x{} padding {}", number,
                             p.batch, p.in, p.height, p.width, p.out, p.out_height, p.out_width,
                             p.padding));
    const Trial t(p, rng);
    check_forward(t, rng.below(2) == 0);
    check_data(t, rng);
    check_weights(t);
  }
}

INSTANTIATE_TEST_SUITE_P(Fast, AmxWinograd, testing::Range(0, is_usable() ? 10 : 0));
INSTANTIATE_TEST_SUITE_P(Slow, AmxWinograd, testing::Range(100, is_usable() ? 200 : 100));

// Chunks of rows, of which there are several here, are the same for any number of threads.
TEST(AmxWinogradThreads, NoBitDependsOnTheirNumber) {
  if (!is_usable()) return;
  const Plain p{.batch = 33,
                .in = 40,
                .height = 13,
                .width = 10,
                .out = 70,
                .out_height = 13,
                .out_width = 10,
                .kernel_h = 3,
                .kernel_w = 3,
                .stride = 1,
                .padding = 1,
                .groups = 1};
  std::vector<float> first_y, first_dw;
  std::vector<double> first_sums;
  for (int team : {1, 2, 3}) {
    set_threads(team);
    Rng rng(4, Purpose::test);
    const Trial t(p, rng);
    Garbage y(t.target.bytes()), sums(sums_bytes(t.target));
    auto* partial = reinterpret_cast<double*>(sums.get());
    t.run(false, Trial::value_of(t.source, t.x), {.kind = Finish::norm_sums, .partial = partial},
          y);
    const auto plain = Trial::plain_of(t.target, y, t.dy.size());
    const auto dw = weight_gradient(t);
    const std::vector<double> all(partial, partial + 2 * t.target.lanes());
    if (team == 1) {
      first_y = plain;
      first_dw = dw;
      first_sums = all;
    }
    EXPECT_EQ(plain, first_y);
    EXPECT_EQ(dw, first_dw);
    EXPECT_EQ(all, first_sums);
  }
  set_threads(1);
}

// An image's outputs do not depend on the batch it falls into, as the last of an epoch is smaller.
TEST(AmxWinogradChoice, IsTheSameForSmallerBatches) {
  if (!is_usable()) return;
  constexpr int kLarge = 128, kSmall = 8;
  const Shape shape{512, 4, 4};
  Rng rng(5, Purpose::test);
  const std::vector<float> images = random_plain(rng, shape.count() * kLarge);
  const std::vector<float> weight = random_plain(rng, std::size_t(512) * 512 * 9);
  const auto outputs = [&](int batch) {
    OpTrial t;
    t.spec = {.layer = Convolution{.channels = 512, .kernel = 3, .padding = 1, .bias = false},
              .name = "conv",
              .inputs = {shape},
              .output = shape,
              .batch = batch,
              .training = false};
    t.spec.tuning_batch = kLarge;
    t.inputs = {{images.begin(), images.begin() + std::ptrdiff_t(shape.count() * batch)}};
    t.weight = weight;
    t.run();
    return t.output;
  };
  std::vector<float> large = outputs(kLarge);
  const std::vector<float> small = outputs(kSmall);
  large.resize(small.size());
  EXPECT_EQ(large, small);
}

TEST(AmxWinogradChoice, IsMadeByCounting) {
  const auto product = [](int channels, int side, int batch) {
    const Layout l = make_layout(batch, channels, side * side);
    return WinogradProduct{.source = l,
                           .target = l,
                           .height = side,
                           .width = side,
                           .out_height = side,
                           .out_width = side,
                           .before = 1};
  };
  EXPECT_FALSE(winograd_pays(product(256, 3, 128))) << "less than a tile";
  EXPECT_FALSE(winograd_pays(product(16, 32, 128))) << "few channels";
  WinogradProduct unread = product(64, 32, 128);
  unread.height = 34;
  EXPECT_FALSE(winograd_pays(unread)) << "gradients that must be zero";
  EXPECT_FALSE(winograd_pays(product(512, 4, 8))) << "weights take longer than products";
#if defined(CONVOY_ON_AVX2) || defined(CONVOY_ON_AVX512)
  EXPECT_TRUE(winograd_pays(product(64, 32, 128)));
  EXPECT_TRUE(winograd_pays(product(512, 14, 8)));
  EXPECT_FALSE(winograd_pays(product(64, 5, 128))) << "tiles of which three quarters are empty";
#else
  EXPECT_FALSE(winograd_pays(product(256, 56, 128))) << "tiles of the CPU are faster";
#endif
}

}  // namespace

}  // namespace convoy::amx
