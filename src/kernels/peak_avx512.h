// Products of pairs of bf16 as fast as they go.
#pragma once

#include <cstdint>

namespace convoy {

// As many operations as amx_products(rounds) has, in registers; returns how many they were. Only
// where cpu().avx512_bf16.
std::int64_t avx512_bf16_products(std::int64_t rounds);

}  // namespace convoy
