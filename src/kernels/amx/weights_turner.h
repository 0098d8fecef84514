// What a thread does for the gradients of weights (product.h), and the turning of its blocks. Only
// for files that are built for AMX (*_amx.cc).
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
    const std::size_t slot = std::size_t(group * p.all_rows() + row) % p.ring_rows;
    return xs + in * p.source_plane_size() +
           (std::size_t(lot) * p.ring_rows + slot) * p.source_row_size();
  }
  Bf16* turned_targets(const WeightProduct& p, int number, int out) const {
    return ys + (std::size_t(number & 1) * outs + out) * p.target_plane_size();
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

// Turns the blocks of a slab bit by bit: a *unit* is half a block of the source or a block of the
// gradient, and line by line (a row of one plane and lot).
class Turner {
 public:
  Turner(const WeightProduct& p, const Cell& cell, const Bf16* source, const Bf16* target)
      : p_(p), cell_(cell), source_(source), target_(target) {}

  // `fresh`: no row of this slab has been turned for the one before.
  void start(int number, bool fresh) {
    number_ = number;
    slab_ = slab_at(p_, number);
    const int kernel = p_.slide.kernel_height, begin = slab_.first_row * p_.row_stride();
    const int before = begin - p_.row_stride() + kernel;
    first_row_ = fresh || before < begin ? begin : before;
    rows_ = begin + (slab_.rows - 1) * p_.row_stride() + kernel - first_row_;
    source_lines_ = p_.columns ? slab_.lots : cell_.ins * slab_.lots * rows_;
    lines_ = source_lines_ + cell_.outs * slab_.lots * slab_.rows;
    units_ = std::int64_t(source_lines_) * source_units() +
             std::int64_t(lines_ - source_lines_) * slab_.steps;
    line_ = 0;
    begin_line();
  }

  // Spreads all units over so many ticks.
  void pace(std::int64_t ticks) {
    ticks_ = ticks > 0 ? ticks : 1;
    debt_ = 0;
  }
  void tick() {
    debt_ += units_;
    while (debt_ >= ticks_) {
      debt_ -= ticks_;
      if (line_ < lines_) advance();
    }
  }
  void stop() { line_ = lines_ = 0, units_ = 0, pace(1); }
  void finish() {
    while (line_ < lines_) advance();
  }

 private:
  int source_units() const { return p_.columns ? slab_.steps : 2 * p_.source_blocks; }

  // Where the lines of a block begin: image by image, row by row of the map.
  struct Map {
    const Bf16* plane;
    int first_y, stride, height, width;
  };
  void begin_line() {
    unit_ = 0;
    for (; line_ < source_lines_ && !p_.columns; ++line_) {
      const int row = first_row_ + line_ % rows_, lot = line_ / rows_ % slab_.lots,
                in = line_ / rows_ / slab_.lots;
      if (!is_inside(p_, row) || row % p_.row_stride() >= p_.slide.kernel_height) continue;
      const std::size_t plane =
          std::size_t(slab_.first_lot + lot) * p_.shape.in_planes + cell_.first_in + in;
      set_map({.plane = source_ + plane * p_.source.plane_size(),
               .first_y = first_y(p_, row),
               .stride = p_.slide.stride,
               .height = p_.slide.height,
               .width = p_.slide.width});
      to_ = cell_.turned_row(p_, slab_.group, in, lot, row);
      break;
    }
    line_units_ = line_ < source_lines_ ? source_units() : slab_.steps;
    if (line_ < source_lines_ || line_ >= lines_) return;
    const int line = line_ - source_lines_, row = line % slab_.rows,
              lot = line / slab_.rows % slab_.lots, out = line / slab_.rows / slab_.lots;
    const std::size_t plane =
        std::size_t(slab_.first_lot + lot) * p_.shape.out_planes + cell_.first_out + out;
    set_map({.plane = target_ + plane * p_.target.plane_size(),
             .first_y = (slab_.first_row + row) * p_.block_rows(),
             .stride = 1,
             .height = p_.slide.out_height,
             .width = p_.slide.out_width});
    to_ = cell_.turned_targets(p_, number_, out) +
          (std::size_t(lot) * p_.slab_rows + row) * p_.slab_steps * kBlock;
  }

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

  void advance() {
    if (line_ >= source_lines_) {
      turn_target();
    } else if (p_.columns) {
      turn_columns();
    } else {
      turn_source();
    }
    if (++unit_ < line_units_) return;
    ++line_;
    begin_line();
  }

  void turn_source() {
    const int block = unit_ / 2;
    const Bf16* from[4];
    find(slab_.first_step * p_.slide.stride + block * p_.column_advance - p_.slide.padding, from);
    turn_half(interleave_, from, unit_ % 2, to_ + block * kBlock);
  }

  void turn_target() {
    const Bf16* from[4];
    find(slab_.first_step + unit_, from);
    interleave_rows(interleave_, from, to_ + unit_ * kBlock);
  }

  // A block of each in plane. Windows are of one position here, so that a plane is one row.
  void turn_columns() {
    alignas(64) Bf16 blocks[kLongestColumn * kLanes];
    fill_columns(*p_.columns, p_.source, slab_.first_lot + line_,
                 (slab_.first_step + unit_) * kLanes, blocks, kBlock);
    for (int in = 0; in < cell_.ins; ++in) {
      const Bf16* block = blocks + in * kBlock;
      const Bf16* const from[4] = {block, block + 256, block + 512, block + 768};
      turn_rows(interleave_, from,
                cell_.turned_row(p_, slab_.group, in, line_, 0) + unit_ * kBlock);
    }
  }

  const WeightProduct& p_;
  const Cell& cell_;
  const Bf16* source_;
  const Bf16* target_;
  const Interleave interleave_;
  Slab slab_{};
  int number_ = 0;
  int first_row_ = 0, rows_ = 0;  // turned rows
  int source_lines_ = 0, lines_ = 0, line_ = 0;
  int line_units_ = 0, unit_ = 0;
  const Bf16* begin_[4] = {};  // of the four pieces of a block at column 0; null: zeros
  int width_ = 0;
  Bf16* to_ = nullptr;
  std::int64_t units_ = 0, ticks_ = 1, debt_ = 0;
};

}  // namespace convoy::amx
