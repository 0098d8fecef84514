#include "kernels/peak.h"

#include <gtest/gtest.h>

#include "kernels/cpu.h"
#include "kernels/peak_amx.h"
#include "kernels/peak_avx512.h"

namespace convoy {
namespace {

TEST(Peak, F32ProductsAreMeasured) { EXPECT_GT(gemm_f32_gflops(), 0.1); }

TEST(Peak, Bf16ProductsAreMeasured) { EXPECT_GT(gemm_bf16_gflops(), 0.1); }

TEST(Peak, TileProductsCountMultipliesAndAdds) {
  if (!cpu().amx_works) return;
  EXPECT_EQ(amx_products(3), 3 * 4 * 2 * 16 * 16 * 32);
}

TEST(Peak, ProductsOfPairsCountMultipliesAndAdds) {
  if (!cpu().avx512_bf16) return;
  EXPECT_EQ(avx512_bf16_products(3), 3 * 4 * 2 * 16 * 16 * 32);
}

}  // namespace
}  // namespace convoy
