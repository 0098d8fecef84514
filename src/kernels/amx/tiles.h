// Tiles for kernels (*_amx.cc): of the CPU, or in memory where it has none.
#pragma once

#include "kernels/amx/vectors.h"
#if defined(CONVOY_ON_AVX2)
#include "kernels/amx_avx2/tiles.h"
#elif defined(CONVOY_ON_AVX512)
#include "kernels/amx_avx512/tiles.h"
#else
#include "kernels/tiles.h"
#endif

namespace convoy::amx {

#if !defined(CONVOY_ON_AVX2) && !defined(CONVOY_ON_AVX512)
// A tile of sums, [16][16] of rows that begin 32 numbers apart: begins with zeros (`fresh`) or with
// what is there, and is there in the end. In between, what is there belongs to the tile.
template <int kTile>
CONVOY_INLINE void begin_sums(float* there, bool fresh) {
  fresh ? zero_tile<kTile>() : load_sums<kTile>(there);
}
template <int kTile>
CONVOY_INLINE void end_sums(float* there) {
  store_tile<kTile>(there);
}
#endif

#if !defined(CONVOY_ON_AVX512)
// Of tiles 4 and 5, the left factors, only the first so many rows, and of each row only the first
// so many pairs of numbers, may be other than zero in the products that follow, until tiles are
// configured again. Zeros take as long as other numbers here: nothing is done about it.
CONVOY_INLINE void limit_rows(int) {}
CONVOY_INLINE void limit_pairs(int) {}
// Sums kSum and kSum + 1, side by side, plus tile kLeft times tiles 6 and 7.
template <int kSum, int kLeft>
CONVOY_INLINE void multiply_by_both() {
  multiply_tiles<kSum, kLeft, 6>();
  multiply_tiles<kSum + 1, kLeft, 7>();
}
// The sums of a block (below) plus tiles kFirst and kSecond times tiles 6 and 7.
template <int kFirst, int kSecond>
CONVOY_INLINE void multiply_block() {
  multiply_tiles<0, kFirst, 6>();
  multiply_tiles<2, kSecond, 6>();
  multiply_tiles<1, kFirst, 7>();
  multiply_tiles<3, kSecond, 7>();
}
constexpr bool kLoadsCost = true;  // a tile that stays for several products saves time
#endif

// The sums of a block, tiles 0 to 3: rows 0 to 15 x channels 0 to 15, x 16 to 31, rows 16 to 31 x 0
// to 15, ...
CONVOY_INLINE void begin_block(float* there, bool fresh) {
  begin_sums<0>(there, fresh);
  begin_sums<1>(there + 16, fresh);
  begin_sums<2>(there + 512, fresh);
  begin_sums<3>(there + 528, fresh);
}
CONVOY_INLINE void end_block(float* there) {
  end_sums<0>(there);
  end_sums<1>(there + 16);
  end_sums<2>(there + 512);
  end_sums<3>(there + 528);
}

}  // namespace convoy::amx
