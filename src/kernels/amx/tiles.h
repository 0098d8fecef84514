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

// The sums of a block: rows 0 to 15 x channels 0 to 15, x 16 to 31, rows 16 to 31 x 0 to 15, ...
CONVOY_INLINE void zero_block() {
  zero_tile<0>();
  zero_tile<1>();
  zero_tile<2>();
  zero_tile<3>();
}
CONVOY_INLINE void load_block(const float* c) {
  load_sums<0>(c);
  load_sums<1>(c + 16);
  load_sums<2>(c + 512);
  load_sums<3>(c + 528);
}
CONVOY_INLINE void store_block(float* c) {
  store_tile<0>(c);
  store_tile<1>(c + 16);
  store_tile<2>(c + 512);
  store_tile<3>(c + 528);
}

}  // namespace convoy::amx
