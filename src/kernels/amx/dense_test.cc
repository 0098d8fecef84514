// Dense layers on few images: weights moved while backward runs, against gradients that are
// written.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/amx/op_trial.h"
#include "kernels/cpu.h"
#include "kernels/parallel.h"

namespace convoy::amx {

namespace {

// Keeps each gradient where its weight lies.
class Recorder : public WeightUpdate {
 public:
  Recorder(const float* weights, std::size_t count) : weights_(weights), gradients_(count, NAN) {}
  void apply(const float* weight, std::span<const float> gradient) override {
    std::copy(gradient.begin(), gradient.end(), gradients_.begin() + (weight - weights_));
    count_ += gradient.size();
  }
  const std::vector<float>& gradients() const { return gradients_; }
  std::size_t count() const { return count_; }

 private:
  const float* weights_;
  std::vector<float> gradients_;
  std::atomic<std::size_t> count_ = 0;
};

struct Case {
  int batch, in, height, out;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class AmxDense : public testing::TestWithParam<Case> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AmxDense);

TEST_P(AmxDense, HandsOverTheGradientsThatItWouldWrite) {
  const Case c = GetParam();
  set_threads(2);
  const auto family = make_amx_family();
  OpSpec spec{.layer = Dense{.features = c.out, .bias = false},
              .name = "dense",
              .inputs = {{c.in, c.height, c.height}},
              .output = {c.out, 1, 1},
              .batch = c.batch};
  const Layout source = layout_of(spec.inputs[0], c.batch),
               target = layout_of(spec.output, c.batch);
  Rng rng(4, Purpose::test, 0, std::uint64_t(c.batch));
  const auto weights = family->weight_layout(spec);
  const Garbage stored_memory(weights->stored_count() * sizeof(float)),
      written_memory(stored_memory.bytes());
  const auto floats = [](const Garbage& memory) {
    return std::span(reinterpret_cast<float*>(memory.get()), memory.bytes() / sizeof(float));
  };
  const std::span<float> stored = floats(stored_memory), written = floats(written_memory);
  const std::size_t plain_weights = spec.inputs[0].count() * c.out;
  weights->from_plain(random_plain(rng, plain_weights).data(), stored.data());
  spec.weight = stored.data();
  spec.weight_gradient = written.data();
  const auto op = family->bind(spec);
  ASSERT_TRUE(op->traits().updates_weight);

  const Garbage x(source.bytes()), y(target.bytes()), dy(target.bytes()), dx(source.bytes()),
      dx_moved(source.bytes()), saved(op->traits().saved_bytes),
      scratch(op->traits().scratch_bytes);
  import_plain(source, random_plain(rng, spec.inputs[0].count() * c.batch).data(), value(x.get()));
  import_plain(target, random_plain(rng, std::size_t(c.out) * c.batch).data(), value(dy.get()));
  const std::byte* inputs[] = {x.get()};
  op->forward({.inputs = inputs,
               .output = y.get(),
               .saved = saved.get(),
               .scratch = scratch.get(),
               .key = {}});
  const auto backward = [&](const Garbage& to, WeightUpdate* update) {
    std::byte* targets[] = {to.get()};
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
  Recorder recorder(stored.data(), stored.size());
  backward(dx_moved, &recorder);

  EXPECT_EQ(recorder.count(), stored.size());  // each weight once
  EXPECT_TRUE(same_bits(recorder.gradients(), expected));
  EXPECT_EQ(std::count(written.begin(), written.end(), 7.0f), std::ptrdiff_t(written.size()));
  EXPECT_EQ(std::memcmp(dx.get(), dx_moved.get(), source.size() * sizeof(Bf16)), 0);
}

const std::vector<Case> kCases = {{1, 40, 3, 70},    {8, 512, 2, 300}, {9, 33, 1, 33},
                                  {16, 64, 2, 64},   {30, 100, 1, 10}, {32, 256, 2, 130},
                                  {8, 1100, 1, 2000}};  // the last is more than a cache holds
INSTANTIATE_TEST_SUITE_P(Fast, AmxDense,
                         testing::ValuesIn(cpu().amx_works ? kCases : std::vector<Case>{}));

}  // namespace

}  // namespace convoy::amx
