// How the values of this family lie in memory.
//
// A *row* is 32 channels of one image at one position: 32 bf16, 64 bytes. `lot` images (32, 16 or
// 8, by batch size) lie together; a *plane* holds 32 channels of one lot: row (position * lot +
// image), position by position. Planes are cut into *blocks* of 32 rows (2 KB, two AMX tiles). A
// value is [lots][planes][blocks][32 rows][32 channels] of bf16, followed by a trailer (NormSums).
// Rows and channels that pad (images beyond the batch, positions beyond the map, channels beyond
// the last) are zero in every value and every gradient: each kernel keeps it so.
#pragma once

#include <cstddef>
#include <cstdint>

namespace convoy::amx {

using Bf16 = std::uint16_t;

constexpr int kLanes = 32;       // channels of a row, rows of a block
constexpr int kBlock = 32 * 32;  // numbers of a block

// What a convolution leaves behind its output for a batch norm that may follow: sums over all
// images and positions.
struct NormSums {
  std::uint64_t valid;  // 1: the sums belong to this value
  std::uint64_t unused[7];
  // double sum[planes * 32], squares[planes * 32] follow.
  double* sum() { return reinterpret_cast<double*>(this + 1); }
  const double* sum() const { return reinterpret_cast<const double*>(this + 1); }
};

struct Layout {
  int batch = 0;
  int channels = 0;
  int positions = 0;  // height * width
  int lot = 32;       // images per lot
  int lots = 0;
  int planes = 0;  // per lot
  int blocks = 0;  // per plane
  int pieces = 0;  // per plane
  std::uint32_t masks[2][2] =
      {};  // rows that are not padding: [of the last lot][of the last block]

  std::size_t plane_size() const { return std::size_t(blocks) * kBlock; }
  std::size_t lot_size() const { return plane_size() * planes; }
  std::size_t size() const { return lot_size() * lots; }
  std::size_t trailer_bytes() const {
    return sizeof(NormSums) + std::size_t(planes) * kLanes * 2 * sizeof(double);
  }
  std::size_t bytes() const { return size() * sizeof(Bf16) + trailer_bytes(); }
  int lanes() const { return planes * kLanes; }
  int lanes_in(int plane) const {  // that do not pad
    return channels - plane * kLanes < kLanes ? channels - plane * kLanes : kLanes;
  }
  // Sums over a value are taken by pieces of a plane and then added up in double and in order, so
  // that no sum depends on the number of threads: each lane has `pieces` partial sums in each lot.
  // Pieces are short (their sums are f32) and equal, and enough for several threads.
  int partials() const { return lots * pieces; }
  int piece_begin(int piece) const { return int(std::int64_t(piece) * blocks / pieces); }
  int piece_of(int block) const { return int((std::int64_t(block + 1) * pieces - 1) / blocks); }
  std::uint32_t rows(int which_lot, int block) const {
    return masks[which_lot == lots - 1][block == blocks - 1];
  }
  NormSums* trailer(Bf16* value) const { return reinterpret_cast<NormSums*>(value + size()); }
  const NormSums* trailer(const Bf16* value) const {
    return reinterpret_cast<const NormSums*>(value + size());
  }
};

// The layout of a value; `lot` follows from the batch alone.
Layout make_layout(int batch, int channels, int positions);
int lot_of(int batch);

}  // namespace convoy::amx
