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

// Tiles by number as a template argument, which the compiler's own macros do not take; and it is
// told what is read. Rows lie together. kStream: past the first-level cache.
template <int kTile, bool kStream>
static inline __attribute__((always_inline)) void load_tile(const void* rows) {
  const auto& all = *static_cast<const char(*)[1024]>(rows);
  const std::int64_t row_bytes = 64;
  if (kStream) {
    asm volatile("tileloaddt1\t(%1,%2,1), %%tmm%c0"
                 :
                 : "i"(kTile), "r"(rows), "r"(row_bytes), "m"(all));
  } else {
    asm volatile("tileloadd\t(%1,%2,1), %%tmm%c0"
                 :
                 : "i"(kTile), "r"(rows), "r"(row_bytes), "m"(all));
  }
}

// sum += left x right
template <int kSum, int kLeft, int kRight>
static inline __attribute__((always_inline)) void multiply_tiles() {
  asm volatile("tdpbf16ps\t%%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kLeft), "i"(kRight));
}

}  // namespace convoy
