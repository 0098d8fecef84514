// Built for AMX: no templates or inline functions of the standard library here (see cpu_amx.cc).
#include "kernels/peak_amx.h"

#include <immintrin.h>

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
  asm volatile("" : : "r"(a), "r"(b) : "memory");  // filled before tiles are loaded
  configure_full_tiles();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t round = 0; round < rounds; ++round) {
    _tile_loadd(4, a[0], 64);
    _tile_loadd(6, b[0], 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b[1], 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a[1], 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, 64);
  _tile_release();
  return rounds * 4 * (16 * 16 * 32 * 2);
}

}  // namespace convoy
