// Weights moved while backward runs, against gradients that are written.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/amx/family.h"
#include "kernels/amx/op_trial.h"
#include "kernels/parallel.h"

namespace convoy::amx {

namespace {

// Keeps each gradient where its weight lies, and spoils the weight.
class Recorder : public WeightUpdate {
 public:
  explicit Recorder(std::span<float> weights)
      : weights_(weights), gradients_(weights.size(), NAN) {}
  void apply(const float* weight, std::span<const float> gradient) override {
    const auto at = weight - weights_.data();
    std::copy(gradient.begin(), gradient.end(), gradients_.begin() + at);
    std::fill_n(weights_.begin() + at, gradient.size(), 1e3f);
    count_ += gradient.size();
  }
  const std::vector<float>& gradients() const { return gradients_; }
  std::size_t count() const { return count_; }

 private:
  std::span<float> weights_;
  std::vector<float> gradients_;
  std::atomic<std::size_t> count_ = 0;
};

OpSpec dense(int batch, int in, int height, int out) {
  return {.layer = Dense{.features = out, .bias = false},
          .name = "dense",
          .inputs = {{in, height, height}},
          .output = {out, 1, 1},
          .batch = batch};
}

OpSpec convolution(int batch, int in, int size, int out, Convolution c) {
  c.channels = out;
  c.bias = false;
  const int width = (size + 2 * c.padding - c.kernel) / c.stride + 1;
  return {.layer = c,
          .name = "convolution",
          .inputs = {{in, size, size}},
          .output = {out, width, width},
          .batch = batch};
}

// The same as the first layer, which reads the plain input and has nobody to hand a gradient to.
OpSpec first(OpSpec spec) {
  spec.first = true;
  spec.wants_input_gradient = false;
  return spec;
}

std::size_t plain_weights(const OpSpec& spec) {
  if (const auto* c = std::get_if<Convolution>(&spec.layer))
    return std::size_t(c->kernel) * c->kernel * spec.inputs[0].channels * spec.output.channels;
  return spec.inputs[0].count() * spec.output.count();
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class AmxMoving : public testing::TestWithParam<OpSpec> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AmxMoving);

TEST_P(AmxMoving, HandsOverTheGradientsThatItWouldWrite) {
  OpSpec spec = GetParam();
  set_threads(2);
  const auto family = make_family();
  const Layout source = layout_of(spec.inputs[0], spec.batch),
               target = layout_of(spec.output, spec.batch);
  Rng rng(4, Purpose::test, 0, std::uint64_t(spec.batch));
  const auto weights = family->weight_layout(spec);
  const Garbage stored_memory(weights->stored_count() * sizeof(float)),
      written_memory(stored_memory.bytes());
  const auto floats = [](const Garbage& memory) {
    return std::span(reinterpret_cast<float*>(memory.get()), memory.bytes() / sizeof(float));
  };
  const std::span<float> stored = floats(stored_memory), written = floats(written_memory);
  weights->from_plain(random_plain(rng, plain_weights(spec)).data(), stored.data());
  spec.weight = stored.data();
  spec.weight_gradient = written.data();
  const auto op = family->bind(spec);
  ASSERT_TRUE(op->traits().updates_weight);

  const Garbage x(source.bytes()), y(target.bytes()), dy(target.bytes()), dx(source.bytes()),
      dx_moved(source.bytes()), saved(op->traits().saved_bytes),
      scratch(op->traits().scratch_bytes);
  const std::vector<float> plain = random_plain(rng, spec.inputs[0].count() * spec.batch);
  import_plain(source, plain.data(), value(x.get()));
  import_plain(target, random_plain(rng, spec.output.count() * spec.batch).data(), value(dy.get()));
  const std::byte* inputs[] = {spec.first ? reinterpret_cast<const std::byte*>(plain.data())
                                          : x.get()};
  op->forward({.inputs = inputs,
               .output = y.get(),
               .saved = saved.get(),
               .scratch = scratch.get(),
               .key = {}});
  const auto backward = [&](const Garbage& to, WeightUpdate* update) {
    std::byte* targets[] = {spec.wants_input_gradient ? to.get() : nullptr};
    op->backward({.inputs = inputs,
                  .output = y.get(),
                  .saved = saved.get(),
                  .scratch = scratch.get(),
                  .output_gradient = dy.get(),
                  .input_gradients = targets,
                  .update = update});
  };
  backward(dx, nullptr);
  const std::vector<float> expected(written.begin(), written.end());
  std::fill(written.begin(), written.end(), 7.0f);
  Recorder recorder(stored);
  backward(dx_moved, &recorder);

  EXPECT_EQ(recorder.count(), stored.size());  // each weight once
  EXPECT_TRUE(same_bits(recorder.gradients(), expected));
  EXPECT_EQ(std::count(written.begin(), written.end(), 7.0f), std::ptrdiff_t(written.size()));
  EXPECT_EQ(std::memcmp(dx.get(), dx_moved.get(), source.size() * sizeof(Bf16)), 0);
}

std::vector<OpSpec> cases() {
  if (!is_usable()) return {};
  const Convolution narrow{.kernel = 1}, wide{.kernel = 3, .padding = 1},
      far{.kernel = 3, .stride = 2, .padding = 1};
  return {dense(1, 40, 3, 70),
          dense(8, 512, 2, 300),
          dense(9, 33, 1, 33),
          dense(16, 64, 2, 64),
          dense(30, 100, 1, 10),
          dense(32, 256, 2, 130),
          dense(8, 1100, 1, 2000),  // more than a cache holds
          dense(70, 100, 1, 130),   // several lots
          convolution(8, 256, 14, 100, narrow),
          convolution(16, 300, 28, 130, narrow),  // several slabs
          convolution(9, 96, 7, 120, wide),
          convolution(40, 32, 12, 33, wide),
          convolution(40, 20, 12, 33, wide),  // few planes: sums of parts
          convolution(33, 64, 9, 96, far),
          first(convolution(20, 3, 16, 40, wide))};
}
INSTANTIATE_TEST_SUITE_P(Fast, AmxMoving, testing::ValuesIn(cases()));

}  // namespace

}  // namespace convoy::amx
