// Built for AMX: no templates or inline functions of the standard library here, since the linker
// could choose this file's copy for CPUs that have no AMX.
#include "kernels/cpu_amx.h"

#include "kernels/tiles.h"

namespace convoy {

void amx_multiply(const std::uint16_t* left, const std::uint16_t* right, float* sums) {
  configure_full_tiles();
  zero_tile<0>();
  load_tile<4, false>(left);
  load_tile<6, false>(right);
  multiply_tiles<0, 4, 6>();
  store_tile<0, 16>(sums);
  release_tiles();
}

bool amx_product_is_right() {
  // a: 16 x 32, b: 32 x 16 stored as 16 rows of 16 pairs, c = a * b. Whole numbers below 8 are
  // exact in bf16.
  alignas(64) std::uint16_t a[16][32];
  alignas(64) std::uint16_t b[16][16][2];
  alignas(64) float c[16][16];
  const auto left = [](int i, int k) { return float((i * 3 + k) % 7 - 3); };
  const auto right = [](int k, int j) { return float((k + j * 5) % 5 - 2); };
  const auto bf16 = [](float value) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return std::uint16_t(bits >> 16);
  };
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 32; ++k) a[i][k] = bf16(left(i, k));
  for (int k = 0; k < 32; ++k)
    for (int j = 0; j < 16; ++j) b[k / 2][j][k % 2] = bf16(right(k, j));

  amx_multiply(a[0], b[0][0], c[0]);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      float sum = 0;
      for (int k = 0; k < 32; ++k) sum += left(i, k) * right(k, j);
      if (c[i][j] != sum) return false;
    }
  return true;
}

}  // namespace convoy
