// Rows of values to the points of Winograd's algorithm (winograd.h). Only for kernels (*_amx.cc).
#pragma once

#include "kernels/amx/lanes.h"
#include "kernels/amx/winograd.h"
#include "kernels/winograd/product.h"
#include "kernels/winograd/transforms.h"

namespace convoy::amx {

using winograd::kPoints;
using winograd::kSide;

constexpr int kGroup = 8;  // rows of one tile that lie together; every lot is a multiple of it
constexpr int kRoom = 16;  // floats: a line of the cache
constexpr int kTileSide = 4;

// What the transforms and products ask of a vector: 32 channels, and 16 of them.
struct RowVector {
  using Vector = Row;
  CONVOY_INLINE Row times(float c, Row a) { return same_row(c) * a; }
  CONVOY_INLINE Row scaled(float c, Row a, Row b) { return fused(same_row(c), a, b); }
};
struct HalfVector {
  using Vector = Floats;
  static constexpr int kLanes = 16;
  CONVOY_INLINE Floats load(const float* p) { return load_floats(p); }
  CONVOY_INLINE void store(float* p, Floats v) { store_floats(p, v); }
  CONVOY_INLINE Floats same(float v) { return same_floats(v); }
  CONVOY_INLINE Floats scaled(float c, Floats a, Floats b) { return fused(same_floats(c), a, b); }
};

// The product of a panel of 32 channels: as many rows and vectors as stay in registers.
CONVOY_INLINE void multiply_panel(winograd::Operands o, int rows, int depth, bool add) {
  constexpr int kRows = kRegisters / 4, kVectors = kRegisters / 16 > 0 ? 2 : 1;
  constexpr int kBlockRows = kVectors == 2 ? kRows : 4;
  for (int row = 0; row < rows; row += kBlockRows) {
    winograd::Operands part = o;
    for (int lane = 0; lane < kLanes; lane += kVectors * HalfVector::kLanes) {
      winograd::multiply_block<HalfVector, kBlockRows, kVectors>(part, depth, add);
      part.right += kVectors * HalfVector::kLanes;
      part.sums += kVectors * HalfVector::kLanes;
    }
    o.left += kBlockRows * o.left_row;
    o.sums += kBlockRows * o.sums_row;
  }
}

struct PointRows {
  std::size_t row, point;  // floats from one to the next
  PointRows(int rows, int lanes)
      : row(std::size_t(lanes) + kRoom), point(std::size_t(rows) * row + kRoom) {}
  std::size_t size() const { return kPoints * point; }
};

struct PointWeights {
  int inner, outer_planes;  // channels, planes
  std::size_t point;
  PointWeights(int inner_planes, int outers)
      : inner(inner_planes * kLanes),
        outer_planes(outers),
        point(std::size_t(inner_planes) * outers * kBlock + kRoom) {}
  std::size_t size() const { return kPoints * point; }
  std::size_t at(int outer_plane, int channel) const {
    return (std::size_t(outer_plane) * inner + channel) * kLanes;
  }
};

// Where the rows of a group lie: one tile of kGroup images of a lot.
struct Group {
  int lot, image, y, x;  // of the tile's first output

  Group(const WinogradProduct& p, int row) {
    const int unit = row / p.source.lot, tile = unit % p.tiles();
    lot = unit / p.tiles();
    image = row % p.source.lot;
    y = tile / p.tiles_across() * kTileSide;
    x = tile % p.tiles_across() * kTileSide;
  }
};

// One row of one plane: numbers `at` positions, of which those outside the map (negative) are zero.
template <int kFrom, auto kTransform, bool kInside>
CONVOY_INLINE void row_to_points(const Bf16* from, const std::ptrdiff_t* at, std::size_t point,
                                 float* to) {
  Row half[kSide * kFrom];
#pragma GCC unroll 6
  for (int j = 0; j < kFrom; ++j) {
    Row line[kFrom];
#pragma GCC unroll 6
    for (int i = 0; i < kFrom; ++i) {
      const std::ptrdiff_t offset = at[i * kFrom + j];
      line[i] = kInside || offset >= 0 ? load_row(from + offset) : zero_row();
    }
    kTransform(line, 1, half + j, kFrom);
  }
#pragma GCC unroll 6
  for (int i = 0; i < kSide; ++i) {
    Row line[kSide];
    kTransform(half + i * kFrom, 1, line, 1);
#pragma GCC unroll 6
    for (int j = 0; j < kSide; ++j) store_row(to + (i * kSide + j) * point, line[j]);
  }
}

// Rows [first, last) of the product, in whole groups, to their points: of squares of kFrom x kFrom
// numbers of a value whose map is `height` x `width`, which begin `before` a tile's first output.
template <int kFrom, auto kTransform>
static void to_points(const WinogradProduct& p, const Layout& l, int height, int width, int before,
                      const Bf16* value, int first, int last, const PointRows& table, float* to) {
  for (int row = first; row < last; row += kGroup, to += kGroup * table.row) {
    const Group group(p, row);
    std::ptrdiff_t at[kFrom * kFrom];
    bool inside = true;
    for (int i = 0; i < kFrom; ++i) {
      for (int j = 0; j < kFrom; ++j) {
        const int y = group.y - before + i, x = group.x - before + j;
        const bool there = y >= 0 && y < height && x >= 0 && x < width;
        at[i * kFrom + j] = there ? (std::ptrdiff_t(y) * width + x) * l.lot * kLanes : -1;
        inside = inside && there;
      }
    }
    const Bf16* from = value + group.lot * l.lot_size() + std::size_t(group.image) * kLanes;
    for (int plane = 0; plane < l.planes; ++plane, from += l.plane_size()) {
      for (int n = 0; n < kGroup; ++n) {
        float* points = to + n * table.row + plane * kLanes;
        inside
            ? row_to_points<kFrom, kTransform, true>(from + n * kLanes, at, table.point, points)
            : row_to_points<kFrom, kTransform, false>(from + n * kLanes, at, table.point, points);
      }
    }
  }
}

}  // namespace convoy::amx
