// Built for AMX: no templates or inline functions of the standard library here (see cpu_amx.cc).
#include "kernels/peak_amx.h"

#include "kernels/tiles.h"

namespace convoy {

namespace {

// Numbers of both signs between 2^-7 and 2: products of zeros take less power, and a core that has
// power left runs faster than it does with data.
void fill(std::uint16_t* tiles, std::uint32_t seed) {
  for (int i = 0; i < 2 * 16 * 32; ++i) {
    seed = seed * 1664525u + 1013904223u;
    tiles[i] = std::uint16_t(0x3c00 + (seed >> 20 & 0x3ff) + (seed >> 31 << 15));
  }
}

}  // namespace

std::int64_t amx_products(std::int64_t rounds) {
  alignas(64) std::uint16_t a[2][16][32];
  alignas(64) std::uint16_t b[2][16][32];
  fill(a[0][0], 1);
  fill(b[0][0], 2);
  alignas(64) float c[16][16];
  configure_full_tiles();
  zero_tile<0>();
  zero_tile<1>();
  zero_tile<2>();
  zero_tile<3>();
  for (std::int64_t round = 0; round < rounds; ++round) {
    load_tile<4, false>(a[0]);
    load_tile<6, false>(b[0]);
    multiply_tiles<0, 4, 6>();
    load_tile<7, false>(b[1]);
    multiply_tiles<1, 4, 7>();
    load_tile<5, false>(a[1]);
    multiply_tiles<2, 5, 6>();
    multiply_tiles<3, 5, 7>();
  }
  store_tile<0, 16>(c[0]);
  release_tiles();
  return rounds * 4 * (16 * 16 * 32 * 2);
}

}  // namespace convoy
