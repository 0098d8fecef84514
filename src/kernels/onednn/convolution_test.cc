// What the numbers are is the contract of families (nn/family_test.cc); here, which kernels make
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu.h"
#include "kernels/onednn/ops.h"
#include "kernels/onednn/product_op.h"

namespace convoy::onednn {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Case {
  int in, size, out, kernel, stride = 1, padding = 0;
  bool first = false;
  int groups = 1;
};

std::unique_ptr<Op> make(const Case& c) {
  const Convolution layer{.channels = c.out,
                          .kernel = c.kernel,
                          .stride = c.stride,
                          .padding = c.padding,
                          .groups = c.groups,
                          .bias = true,
                          .relu = true};
  const int out = (c.size + 2 * c.padding - c.kernel) / c.stride + 1;
  const OpSpec spec{.layer = layer,
                    .name = "convolution",
                    .inputs = {{c.in, c.size, c.size}},
                    .output = {c.out, out, out},
                    .batch = 2,
                    .tuning_batch = 2,
                    .first = c.first,
                    .wants_input_gradient = !c.first};
  return make_convolution(layer, spec, nullptr);
}

const ProductPasses& passes_of(const Op& op) { return dynamic_cast<const ProductOp&>(op).passes(); }

// oneDNN's reference kernels are hundreds of times slower. The first convolutions of the zoo's
// networks, which read plain images of few channels, and others of odd sizes.
TEST(OnednnConvolution, NoneIsLeftToTheReferenceKernel) {
  cap_onednn_isa();
  for (const Case& c :
       {Case{1, 28, 32, 3, 1, 0, true}, Case{1, 28, 20, 5, 1, 0, true},
        Case{3, 224, 64, 11, 4, 2, true}, Case{3, 64, 64, 7, 2, 3, true},
        Case{3, 32, 64, 3, 1, 1, true}, Case{3, 32, 6, 5, 1, 0, true}, Case{20, 12, 50, 5, 1, 0},
        Case{64, 27, 192, 5, 1, 2}, Case{33, 9, 40, 3, 2, 1}, Case{3, 9, 5, 3, 1, 1},
        Case{64, 14, 256, 1}, Case{64, 14, 64, 3, 1, 1}, Case{64, 9, 64, 3, 1, 1, false, 2}}) {
    SCOPED_TRACE(testing::Message() << c.in << " to " << c.out << ", kernel " << c.kernel);
    const auto op = make(c);
    const ProductPasses& passes = passes_of(*op);
    EXPECT_THAT(passes.forward->kernel(), Not(HasSubstr("ref")));
    EXPECT_THAT(passes.backward_weights->kernel(), Not(HasSubstr("ref")));
    if (c.first) continue;
    EXPECT_THAT(passes.backward_data->kernel(), Not(HasSubstr("ref")));
  }
}

// Where vectors have 16 lanes, oneDNN has its own.
TEST(OnednnConvolution, WithoutAvx512OurWinogradIsTakenWhereItFits) {
  cap_onednn_isa();
  const bool ours = block() == 8;
  const Case fitting[] = {{64, 14, 64, 3, 1, 1}, {64, 9, 72, 3},        {128, 8, 64, 3, 1, 2},
                          {68, 14, 66, 3, 1, 1}, {64, 14, 96, 5, 1, 2}, {70, 14, 65, 5}};
  for (const Case& c : fitting) {
    const auto op = make(c);
    for (const auto* pass :
         {&passes_of(*op).forward, &passes_of(*op).backward_weights, &passes_of(*op).backward_data})
      EXPECT_EQ((*pass)->kernel() == "winograd:avx2", ours) << c.in << " to " << c.out;
  }
  const Case others[] = {{64, 14, 64, 3, 2, 1},
                         {64, 14, 64, 7, 1, 2},
                         {64, 14, 64, 3, 1, 1, true},
                         {64, 14, 64, 3, 1, 1, false, 2},
                         {64, 14, 64, 3, 1, 3}};
  for (const Case& c : others) {
    const auto op = make(c);
    EXPECT_NE(passes_of(*op).forward->kernel(), "winograd:avx2") << c.in << " to " << c.out;
  }
}

}  // namespace
}  // namespace convoy::onednn
