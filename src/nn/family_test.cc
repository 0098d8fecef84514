// The contract of a family of kernels, over all families that this CPU can run: every layer against
// the plain reference, as closely as the family's precision allows.
#include "kernels/amx/family.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/onednn/family.h"
#include "nn/graph.h"
#include "nn/layer_cases.h"
#include "nn/model_test_support.h"

namespace convoy {
namespace {

using testing::Case;
using testing::relative_error;

struct Contract {
  std::string name;
  std::unique_ptr<Family> (*make)();
  double value_tolerance, gradient_tolerance;
};

// bf16 has 8 bits: a few rounded layers, and ReLUs that fall the other way, move gradients by tens
// of per cent in networks this small (the rounding of single kernels is tested beside them); a
// wrong kernel moves them by 100 and more.
std::vector<Contract> contracts() {
  std::vector<Contract> list = {
      {"onednn_f32", [] { return make_onednn_family({}); }, 1e-4, 2e-3},
      {"onednn_fixed", [] { return make_onednn_family({.fixed_algorithms = true}); }, 1e-4, 2e-3},
      {"amx_avx2", amx_avx2::make_family, 0.03, 0.3}};
  if (amx_avx512::is_usable()) list.push_back({"amx_avx512", amx_avx512::make_family, 0.03, 0.3});
  if (amx::is_usable()) list.push_back({"amx", amx::make_family, 0.03, 0.3});
  return list;
}

class FamilyTest : public ::testing::TestWithParam<std::tuple<std::size_t, Case>> {};

TEST_P(FamilyTest, AgreesWithReference) {
  const Contract contract = contracts()[std::get<0>(GetParam())];
  const Network network = without_dropout(std::get<1>(GetParam()).network);
  const auto family = contract.make();
  for (int size : {1, 5, 33}) {
    SCOPED_TRACE(size);
    Parameters parameters(network, *family, size);
    parameters.initialize(network, 3);
    testing::shake(parameters);
    Graph graph(network, parameters, *family, {.batch = size, .tuning_batch = size});
    ReferenceGraph reference = testing::reference_of(network, parameters, size);
    const Batch batch = testing::random_batch(network, size);
    auto* arena = static_cast<std::byte*>(std::aligned_alloc(64, graph.arena_bytes()));
    const LossSums sums = graph.forward(batch, arena, {}, 0);
    graph.backward(arena, {}, nullptr);
    std::free(arena);
    const auto expected = reference.forward(std::span<const float>(batch.images), batch.labels);
    reference.backward();
    EXPECT_LT(relative_error(graph.logits(), reference.logits()), contract.value_tolerance);
    EXPECT_NEAR(sums.loss, expected.loss_sum, contract.value_tolerance * (1 + expected.loss_sum));
    std::vector<float> plain;
    for (const Parameter& parameter : parameters.list()) {
      plain.resize(parameter.spec.count());
      parameters.export_gradients(parameter, plain);
      const std::vector<double>& wanted = reference.gradient(parameter.spec.name);
      double norm = 0;
      for (double value : wanted) norm += value * value;
      if (std::sqrt(norm) < 1e-6) continue;  // a bias in front of a batch norm: rounding only
      EXPECT_LT(relative_error(plain, wanted), contract.gradient_tolerance) << parameter.spec.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyTest,
                         ::testing::Combine(::testing::Range(std::size_t{0}, contracts().size()),
                                            ::testing::ValuesIn(testing::layer_cases())),
                         [](const auto& named) {
                           return contracts()[std::get<0>(named.param)].name + "_" +
                                  std::get<1>(named.param).name;
                         });

}  // namespace
}  // namespace convoy
