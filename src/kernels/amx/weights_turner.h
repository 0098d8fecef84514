// What a thread does for the gradients of weights (product.h), and the turning of its blocks. Only
// for kernels (*_amx.cc).
#pragma once

#include "kernels/amx/product.h"
#include "kernels/amx/turn.h"

namespace convoy::amx {

alignas(64) static const Bf16 kZeros[256] = {};

// The lots, target rows and steps of one slab.
struct Slab {
  int first_lot, lots;
  int first_row, rows;
  int first_step, steps;
  int group;  // slabs of other rows of the same lots and steps
};

// Rows run fastest, so that a slab finds turned rows of the one before.
static inline Slab slab_at(const WeightProduct& p, int number) {
  const auto cuts = [](int whole, int part) { return (whole + part - 1) / part; };
  const auto at_most = [](int left, int most) { return left < most ? left : most; };
  const int row_slabs = cuts(p.rows, p.slab_rows),
            step_slabs = cuts(p.slide.out_width, p.slab_steps);
  const int group = number / row_slabs, row = number % row_slabs * p.slab_rows;
  const int step = group % step_slabs * p.slab_steps, lot = group / step_slabs * p.slab_lots;
  return {.first_lot = lot,
          .lots = at_most(p.target.lots - lot, p.slab_lots),
          .first_row = row,
          .rows = at_most(p.rows - row, p.slab_rows),
          .first_step = step,
          .steps = at_most(p.slide.out_width - step, p.slab_steps),
          .group = group};
}

// What one thread does from beginning to end, and the memory it has for it.
struct Cell {
  int first_in, ins;
  int first_out, outs;
  int first_slab, last_slab;
  Bf16* xs;
  Bf16* ys;
  float* sums;

  Bf16* turned_row(const WeightProduct& p, int group, int in, int lot, int row) const {
    const std::size_t slot = std::size_t(group * p.all_rows() + row) % p.source_rows();
    return xs + in * p.source_plane_size() +
           (std::size_t(lot) * p.source_rows() + slot) * p.source_row_size();
  }
  Bf16* turned_targets(const WeightProduct& p, int out) const {
    return ys + out * p.target_plane_size();
  }
};

// Source rows of a turned row: the first, as the slide sees it; others follow `stride` apart.
CONVOY_INLINE int first_y(const WeightProduct& p, int row) {
  return row * p.row_advance - p.slide.padding;
}
CONVOY_INLINE bool is_inside(const WeightProduct& p, int row) {
  const int y = first_y(p, row);
  return y < p.slide.height && y + (p.block_rows() - 1) * p.slide.stride >= 0;
}

// Turns the blocks of slabs, line by line (a row of one plane and lot).
class Turner {
 public:
  Turner(const WeightProduct& p, const Cell& cell, const Bf16* source, const Bf16* target)
      : p_(p), cell_(cell), source_(source), target_(target) {}

  // `fresh`: no row of this slab has been turned for the one before.
  void turn(const Slab& slab, bool fresh) {
    const int kernel = p_.slide.kernel_height, begin = slab.first_row * p_.row_stride();
    const int before = begin - p_.row_stride() + kernel;
    const int first = fresh || before < begin ? begin : before;
    const int end = begin + (slab.rows - 1) * p_.row_stride() + kernel;
    for (int lot = 0; lot < slab.lots; ++lot) {
      if (p_.columns) turn_columns(slab, lot);
      for (int in = 0; in < cell_.ins && !p_.columns; ++in)
        for (int row = first; row < end; ++row)
          if (is_inside(p_, row) && row % p_.row_stride() < kernel) turn_source(slab, in, lot, row);
      for (int out = 0; out < cell_.outs; ++out)
        for (int row = 0; row < slab.rows; ++row) turn_target(slab, out, lot, row);
    }
  }

 private:
  // Where the lines of a block begin: image by image, row by row of the map.
  struct Map {
    const Bf16* plane;
    int first_y, stride, height, width;
  };
  void set_map(const Map& map) {
    width_ = map.width;
    for (int e = 0; e < 4; ++e) {
      const int y = map.first_y + e * 8 / p_.images * map.stride;
      begin_[e] =
          y < 0 || y >= map.height
              ? nullptr
              : map.plane + (std::size_t(y) * map.width * p_.images + e * 8 % p_.images) * kLanes;
    }
  }
  // The four pieces of the block at column x.
  void find(int x, const Bf16* from[4]) const {
    const bool real = x >= 0 && x < width_;
    for (int e = 0; e < 4; ++e)
      from[e] = real && begin_[e] ? begin_[e] + std::size_t(x) * p_.images * kLanes : kZeros;
  }

  // The block that lies so many columns behind this one.
  void ask_for(const Bf16* const from[4], int columns) const {
    for (int e = 0; e < 4; ++e)
      for (int row = 0; row < 8; ++row)
        _mm_prefetch(reinterpret_cast<const char*>(from[e] + (columns * p_.images + row) * kLanes),
                     _MM_HINT_T0);
  }

  void turn_source(const Slab& slab, int in, int lot, int row) {
    const std::size_t plane =
        std::size_t(slab.first_lot + lot) * p_.shape.in_planes + cell_.first_in + in;
    set_map({.plane = source_ + plane * p_.source.plane_size(),
             .first_y = first_y(p_, row),
             .stride = p_.slide.stride,
             .height = p_.slide.height,
             .width = p_.slide.width});
    Bf16* to = cell_.turned_row(p_, slab.group, in, lot, row);
    for (int block = 0; block < p_.source_blocks; ++block, to += kBlock) {
      const Bf16* from[4];
      find(slab.first_step * p_.slide.stride + block * p_.column_advance - p_.slide.padding, from);
      ask_for(from, 2 * p_.column_advance);
      turn_rows(interleave_, from, to);
    }
  }

  void turn_target(const Slab& slab, int out, int lot, int row) {
    const std::size_t plane =
        std::size_t(slab.first_lot + lot) * p_.shape.out_planes + cell_.first_out + out;
    set_map({.plane = target_ + plane * p_.target.plane_size(),
             .first_y = (slab.first_row + row) * p_.block_rows(),
             .stride = 1,
             .height = p_.slide.out_height,
             .width = p_.slide.out_width});
    Bf16* to = cell_.turned_targets(p_, out) +
               (std::size_t(lot) * p_.slab_rows + row) * p_.slab_steps * kBlock;
    for (int step = 0; step < slab.steps; ++step, to += kBlock) {
      const Bf16* from[4];
      find(slab.first_step + step, from);
      ask_for(from, 2);
      interleave_rows(interleave_, from, to);
    }
  }

  // A block of each in plane. Windows are of one position here, so that a plane is one row.
  void turn_columns(const Slab& slab, int lot) {
    alignas(64) Bf16 blocks[kLongestColumn * kLanes];
    for (int step = 0; step < slab.steps; ++step) {
      fill_columns(*p_.columns, p_.source, slab.first_lot + lot, (slab.first_step + step) * kLanes,
                   blocks, kBlock);
      for (int in = 0; in < cell_.ins; ++in) {
        const Bf16* block = blocks + in * kBlock;
        const Bf16* const from[4] = {block, block + 256, block + 512, block + 768};
        turn_rows(interleave_, from, cell_.turned_row(p_, slab.group, in, lot, 0) + step * kBlock);
      }
    }
  }

  const WeightProduct& p_;
  const Cell& cell_;
  const Bf16* source_;
  const Bf16* target_;
  const Interleave interleave_ = {};
  const Bf16* begin_[4] = {};  // of the four pieces of a block at column 0; null: zeros
  int width_ = 0;
};

}  // namespace convoy::amx
