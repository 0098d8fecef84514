// Tile products as fast as they go.
#pragma once

#include <cstdint>

namespace convoy {

// Multiplies two pairs of tiles that stay in the L1 cache, `rounds` times; returns how many
// operations that were. Only where cpu().amx_works.
std::int64_t amx_products(std::int64_t rounds);

}  // namespace convoy
