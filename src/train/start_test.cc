#include "train/start.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/augment.h"
#include "data/synthetic.h"
#include "nn/zoo.h"

namespace convoy {
namespace {

std::vector<float> weights(const Model& model, const std::string& name) {
  const Parameter& parameter = *model.parameters().find(name);
  std::vector<float> plain(parameter.spec.count());
  model.parameters().export_values(parameter, plain);
  return plain;
}

std::unique_ptr<Dataset> images(const Shape& shape, std::size_t count) {
  return make_synthetic({.shape = shape, .train_count = count}, SyntheticPart::train, 5);
}

Model small_model(const Shape& shape) {
  return Model(make_network("airbench", shape, 10), {.batch = 4, .threads = 1});
}

// The filters' outputs over all patches have mean products of 1 with themselves and 0 with others.
TEST(Start, WhitenedPatchesAreUncorrelatedAndOfOneSize) {
  const Shape shape{2, 12, 12};
  const auto data = images(shape, 300);
  Model model = small_model(shape);
  set_start({.whiten = true}, *data, model);
  const std::vector<float> filters = weights(model, "whiten.weight");
  constexpr int kTaps = 8, kComponents = 8;
  ASSERT_EQ(filters.size(), std::size_t(2 * kComponents * kTaps));
  for (int i = 0; i < kComponents; ++i)
    for (int k = 0; k < kTaps; ++k)
      EXPECT_EQ(filters[2 * i * kTaps + k], -filters[(2 * i + 1) * kTaps + k]);

  const Augment normalise(*data, {}, 0);
  std::vector<std::uint8_t> bytes(shape.count());
  std::vector<float> image(shape.count());
  std::vector<double> products(kComponents * kComponents);
  int patches = 0;
  for (std::size_t n = 0; n < data->size(); ++n) {
    data->read(n, bytes);
    normalise.apply(bytes, 0, n, image);
    for (int y = 0; y < 11; ++y)
      for (int x = 0; x < 11; ++x, ++patches) {
        double out[kComponents] = {};
        for (int i = 0; i < kComponents; ++i)
          for (int k = 0; k < kTaps; ++k)
            out[i] += filters[2 * i * kTaps + k] *
                      image[(k / 4) * 144 + (y + k / 2 % 2) * 12 + x + k % 2];
        for (int i = 0; i < kComponents; ++i)
          for (int j = 0; j < kComponents; ++j) products[i * kComponents + j] += out[i] * out[j];
      }
  }
  for (int i = 0; i < kComponents; ++i)
    for (int j = 0; j < kComponents; ++j)
      EXPECT_NEAR(products[i * kComponents + j] / patches, i == j ? 1 : 0, 0.02) << i << " " << j;
}

TEST(Start, IdentityCopiesChannelsAndLeavesTheRest) {
  const Shape shape{3, 32, 32};
  const auto data = images(shape, 10);
  Model model = small_model(shape), fresh = small_model(shape);
  set_start({.identity = true}, *data, model);
  EXPECT_EQ(weights(model, "whiten.weight"), weights(fresh, "whiten.weight"));
  EXPECT_EQ(weights(model, "fc.weight"), weights(fresh, "fc.weight"));
  const std::vector<float> now = weights(model, "layer2.conv1.weight"),
                           before = weights(fresh, "layer2.conv1.weight");
  for (int out = 0; out < 256; ++out)
    for (int in = 0; in < 64; ++in)
      for (int tap = 0; tap < 9; ++tap) {
        const std::size_t at = std::size_t((out * 64 + in) * 9 + tap);
        ASSERT_EQ(now[at], out >= 64 ? before[at] : float(in == out && tap == 4)) << at;
      }
}

TEST(Start, NothingAskedNothingChanged) {
  const Shape shape{3, 32, 32};
  const auto data = images(shape, 10);
  Model model = small_model(shape);
  const std::string before = model.parameters().sha256();
  set_start({}, *data, model);
  EXPECT_EQ(model.parameters().sha256(), before);
}

}  // namespace
}  // namespace convoy
