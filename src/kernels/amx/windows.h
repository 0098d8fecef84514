// Which positions a layer reads for each position it writes, as precomputed lists; and the lists of
// tiles that the kernels run through, made from them.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::amx {

struct Reference {
  int source = 0;  // a position
  int tap = 0;     // the position in the kernel that joins source and target
};

// For target t: references [begin[t], begin[t + 1]). No target has two references of one tap.
struct Windows {
  int targets = 0;
  int sources = 0;
  int taps = 0;
  std::vector<int> begin;
  std::vector<Reference> references;
};

struct WindowSpec {
  int height = 1, width = 1;  // of the source
  int out_height = 1, out_width = 1;
  int kernel = 1, stride = 1, padding = 0;
};

Windows sliding_windows(const WindowSpec& spec);
// One target that reads every position, each by a tap of its own.
Windows whole_window(int positions);
// Target y, x reads rows [floor(y H / out), ceil((y + 1) H / out)), and columns likewise.
Windows adaptive_windows(int height, int width, int out_height, int out_width);
// Sources become targets.
Windows inverse(const Windows& windows);

// A tile product: 32 target rows are two tiles of 16; each reads 16 rows of a source plane.
struct TileStep {
  std::int32_t tap;
  std::int32_t row[2];  // first row in the source plane, or kZeroRows, or a join: -2 - index
};
constexpr std::int32_t kZeroRows = -1;

// 16 rows that do not lie together: 8 from each of two places (row, or kZeroRows).
struct TileJoin {
  std::int32_t row[2];
};

struct TilePlan {
  std::vector<std::int32_t> begin;  // of target block b: steps [begin[b], begin[b + 1])
  std::vector<TileStep> steps;
  std::vector<TileJoin> joins;
};

TilePlan plan_tiles(const Windows& windows, int lot);

}  // namespace convoy::amx
