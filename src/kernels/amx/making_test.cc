// Values that the layer which reads them makes (making.h), against values that are there before.
#include "kernels/amx/making.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/amx/family.h"
#include "kernels/amx/op_trial.h"
#include "kernels/amx/product.h"
#include "kernels/parallel.h"

namespace convoy::amx {

namespace {

struct Form {
  int batch, in, size, out, kernel, stride, padding;
};

OpTrial trial_of(const Form& f, bool left) {
  const int out = (f.size + 2 * f.padding - f.kernel) / f.stride + 1;
  OpTrial t;
  t.spec = {.layer = Convolution{.channels = f.out,
                                 .kernel = f.kernel,
                                 .stride = f.stride,
                                 .padding = f.padding,
                                 .bias = false},
            .name = "convolution",
            .inputs = {{f.in, f.size, f.size}},
            .output = {f.out, out, out},
            .batch = f.batch};
  Rng rng(7, Purpose::test);
  t.inputs.push_back(random_plain(rng, t.spec.inputs[0].count() * f.batch));
  t.weight = random_plain(rng, std::size_t(f.in) * f.out * f.kernel * f.kernel);
  t.output_gradient = random_plain(rng, t.spec.output.count() * f.batch);
  t.take = true;
  t.left = left;
  return t;
}

class AmxMaking : public testing::TestWithParam<Form> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AmxMaking);

// More threads than cores too, so that one has to wait for what another makes.
TEST_P(AmxMaking, HasTheBitsOfAValueThatWasThereBefore) {
  set_threads(1);
  OpTrial before = trial_of(GetParam(), false);
  before.run();
  for (const int threads : {1, 2, 3, 7}) {
    SCOPED_TRACE(fmt::format("{} threads", threads));
    set_threads(threads);
    OpTrial made = trial_of(GetParam(), true);
    made.run();
    EXPECT_TRUE(made.output == before.output);
    EXPECT_TRUE(made.input_gradients == before.input_gradients);
    EXPECT_TRUE(made.weight_gradient == before.weight_gradient);
    EXPECT_TRUE(made.taken == before.taken);
  }
  set_threads(1);
}

const Form kForms[] = {{32, 40, 12, 48, 3, 1, 1},    // one lot
                       {90, 64, 9, 64, 3, 1, 1},     // three lots of 32, the last with 26 images
                       {48, 40, 13, 64, 3, 1, 0},    // three lots of 16
                       {5, 72, 14, 40, 3, 1, 1},     // lots of 8, tiles that are joined
                       {32, 40, 13, 48, 3, 2, 1},    // stride: rows that are read once, and twice
                       {9, 40, 12, 48, 1, 2, 0},     // rows that nobody reads
                       {40, 96, 10, 160, 1, 1, 0}};  // no neighbours
const Form kLargeForms[] = {
    {33, 33, 11, 40, 5, 1, 2},    // a kernel that reaches further
    {8, 512, 4, 512, 3, 1, 1},    // weights larger than the source: threads share out planes
    {64, 128, 24, 32, 3, 1, 1}};  // several chunks for each thread

template <std::size_t kCount>
auto where_usable(const Form (&forms)[kCount]) {
  return testing::ValuesIn(forms, forms + (is_usable() ? kCount : 0));
}
std::string number_of(const testing::TestParamInfo<Form>& info) {
  return fmt::format("{}", info.index);
}
INSTANTIATE_TEST_SUITE_P(Fast, AmxMaking, where_usable(kForms), number_of);
INSTANTIATE_TEST_SUITE_P(Slow, AmxMaking, where_usable(kLargeForms), number_of);

TEST(SourceReads, SayWhatIsReadFirstAndLast) {
  const SourceReads reads = SourceReads::of({{0, 2}, {1, 4}, {9, 0}, {3, 5}, {2, 4}}, 9);
  EXPECT_EQ(reads.until, (std::vector<std::int32_t>{0, 2, 4, 4, 5, 9}));
  EXPECT_EQ(reads.from, (std::vector<std::int32_t>{0, 1, 2, 2, 2, 9}));
}

// For all sizes of lots: every tile that a unit reads lies between what is read from it on and what
// is read until then, and lots do not read each other's images.
TEST(SourceReads, OfAPlanCoverItsTiles) {
  const WindowSpec window{
      .height = 5, .width = 6, .out_height = 5, .out_width = 6, .kernel = 3, .padding = 1};
  for (const int batch : {5, 16, 64, 90}) {
    const Layout l = make_layout(batch, 32, window.height * window.width);
    SCOPED_TRACE(fmt::format("{} lots of {}", l.lots, l.lot));
    const TilePlan plan = plan_tiles(sliding_windows(window), l.lot);
    const SourceReads reads = source_reads(plan, l, l);
    ASSERT_EQ(reads.until.size(), std::size_t(l.lots * l.blocks + 1));
    EXPECT_EQ(reads.until.back(), l.lots * l.blocks);
    for (int unit = 0; unit < l.lots * l.blocks; ++unit) {
      const int lot = unit / l.blocks, block = unit % l.blocks;
      const auto expect_covered = [&](int row, int rows) {
        EXPECT_GE(lot * l.blocks + row / 32, reads.from[unit]);
        EXPECT_LT(lot * l.blocks + (row + rows - 1) / 32, reads.until[unit + 1]);
      };
      for (int s = plan.runs[plan.blocks[block].runs].steps;
           s < plan.runs[plan.blocks[block + 1].runs].steps; ++s) {
        for (const std::int32_t row : plan.steps[s].row) {
          if (row >= 0) expect_covered(row, 16);
          if (row >= kZeroRows) continue;
          for (const std::int32_t half : plan.joins[-2 - row].row)
            if (half >= 0) expect_covered(half, 8);
        }
      }
      EXPECT_GE(reads.from[unit], lot * l.blocks);
      EXPECT_LE(reads.until[unit + 1], (lot + 1) * l.blocks);
    }
  }
}

}  // namespace

}  // namespace convoy::amx
