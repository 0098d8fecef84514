// The CPU's tile registers. Only for files that are built for AMX (*_amx.cc).
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace convoy {

// All eight tiles with 16 rows of 64 bytes. Per thread; end with release_tiles(), so that a thread
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
static inline void release_tiles() { _tile_release(); }

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

// Sums of f32, whose rows of 16 begin 32 numbers apart.
template <int kTile>
static inline __attribute__((always_inline)) void load_sums(const float* from) {
  const auto& all = *reinterpret_cast<const float(*)[15 * 32 + 16]>(from);
  const std::int64_t row_bytes = 32 * sizeof(float);
  asm volatile("tileloadd\t(%1,%2,1), %%tmm%c0"
               :
               : "i"(kTile), "r"(from), "r"(row_bytes), "m"(all));
}
template <int kTile, int kRow = 32>
static inline __attribute__((always_inline)) void store_tile(float* to) {
  const std::int64_t row_bytes = kRow * sizeof(float);
  asm volatile("tilestored\t%%tmm%c0, (%1,%2,1)"
               :
               : "i"(kTile), "r"(to), "r"(row_bytes)
               : "memory");
}

template <int kTile>
static inline __attribute__((always_inline)) void zero_tile() {
  asm volatile("tilezero\t%%tmm%c0" : : "i"(kTile));
}

// sum += left x right
template <int kSum, int kLeft, int kRight>
static inline __attribute__((always_inline)) void multiply_tiles() {
  asm volatile("tdpbf16ps\t%%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kLeft), "i"(kRight));
}

}  // namespace convoy
