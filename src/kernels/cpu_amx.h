// The one tile product that decides whether AMX works here.
#pragma once

#include <cstdint>

namespace convoy {

// sums[16][16] = left[16][16 pairs of bf16] x right[16 pairs][16], by one tile instruction. Dies
// with SIGILL where the tiles do not work.
void amx_multiply(const std::uint16_t* left, const std::uint16_t* right, float* sums);

// Multiplies two small matrices of whole numbers on the tiles; whether the product is exactly
// right. By amx_multiply, so call it in a process that may die.
bool amx_product_is_right();

}  // namespace convoy
