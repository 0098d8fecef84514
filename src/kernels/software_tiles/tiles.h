// For tests: the instructions of AMX carried out in software, so that kernels built for AMX run on
// CPUs without it. A test that is linked with this has them before main (convoy_with_tiles).
//
// A CPU without tiles raises SIGILL at a tile instruction. The handler reads the instruction, does
// what it says to eight tiles in memory (of each thread) and goes on behind it. So the very code
// that a CPU with AMX runs is tested, all but the instructions themselves; each takes a microsecond
// or two. The rest of that code needs AVX512_BF16.
#pragma once

#include <cstdint>

namespace convoy {

// Tile instructions that were carried out in software by this process; 0 where the CPU has tiles.
long software_tile_instructions();

// tdpbf16ps for full tiles: sums[16][16] += left[16][16 pairs] x right[16 pairs][16], in the order
// that Intel documents.
void software_tile_product(float* sums, const std::uint32_t* left, const std::uint32_t* right);

}  // namespace convoy
