// The tile registers' configuration. Only for files that are built for AMX (*_amx.cc).
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace convoy {

// All eight tiles with 16 rows of 64 bytes. Per thread; end with _tile_release(), so that a thread
// switch need not save tiles.
static inline void configure_full_tiles() {
  struct alignas(64) {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } configuration;
  static_assert(sizeof configuration == 64);
  // g++ 12 does not know that the instruction reads memory: without this, the stores above may come
  // after it.
  asm volatile("" : : "r"(&configuration) : "memory");
  _tile_loadconfig(&configuration);
}

}  // namespace convoy
