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
  int target_width = 1, source_width = 1;  // positions in a row of the map
  std::vector<int> begin;
  std::vector<Reference> references;
  // The order of products: run by run, each over all source planes, tap by tap within a plane. In
  // a run (of a column of the kernel) a tap reads what the tap before it read for the next row of
  // targets. Empty: every tap is a run.
  std::vector<std::vector<int>> runs;
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

// A tile product: a target block is two tiles of 16 rows; each reads 16 rows of a source plane.
struct TileStep {
  std::int32_t tap;
  std::int32_t row[2];  // first row in the source plane, or kZeroRows, or a join: -2 - index
  std::int32_t held;    // 1: row[0] is row[1] of the step before, of the same run
};
constexpr std::int32_t kZeroRows = -1;

// 16 rows that do not lie together: 8 from each of two places (row, or kZeroRows).
struct TileJoin {
  std::int32_t row[2];
};

// The two tiles of a target block need not lie together.
struct TileBlock {
  std::int32_t row[2];  // first rows in the target plane
  std::int32_t runs;    // of steps, which end with the next block's first
};

struct TileRun {
  std::int32_t steps;  // end with the next run's first
  std::int32_t full;   // 1: no zeros, no joins, and every step but the first holds
};

struct TilePlan {
  std::vector<TileBlock> blocks;  // and one more, for its `runs`
  std::vector<TileRun> runs;      // and one more
  std::vector<TileStep> steps;
  std::vector<TileJoin> joins;
};

// Pairs target tiles to blocks so that the fewest tiles are loaded: tiles that lie together, or
// those of two rows of the map, of which the second reads mostly what the first reads by the next
// tap. Sums are made in an order that depends on neither this nor `lot`.
TilePlan plan_tiles(const Windows& windows, int lot);

}  // namespace convoy::amx
