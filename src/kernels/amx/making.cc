#include "kernels/amx/making.h"

#include <algorithm>
#include <limits>

#include "kernels/amx/product.h"
#include "kernels/amx/winograd.h"

namespace convoy::amx {

SourceReads SourceReads::of(const std::vector<Range>& units, std::int32_t blocks) {
  const std::size_t count = units.size();
  SourceReads reads{.until = std::vector<std::int32_t>(count + 1, 0),
                    .from = std::vector<std::int32_t>(count + 1, blocks)};
  for (std::size_t u = 0; u < count; ++u)
    reads.until[u + 1] = std::max(reads.until[u], units[u].last);
  for (std::size_t u = count; u-- > 0;) reads.from[u] = std::min(reads.from[u + 1], units[u].first);
  reads.until[count] = blocks;  // what no unit reads is made all the same
  return reads;
}

namespace {

// Blocks of a plane that contain rows.
class BlockRange {
 public:
  void add_rows(std::int32_t first, std::int32_t count) {
    first_ = std::min(first_, first / kLanes);
    last_ = std::max(last_, (first + count + kLanes - 1) / kLanes);
  }
  SourceReads::Range of_lot(int lot, const Layout& l) const {
    if (last_ == 0) return {l.lots * l.blocks, 0};  // nothing
    return {lot * l.blocks + first_, lot * l.blocks + last_};
  }

 private:
  std::int32_t first_ = std::numeric_limits<std::int32_t>::max(), last_ = 0;
};

BlockRange read_by(const TilePlan& plan, std::size_t block) {
  BlockRange range;
  const int first = plan.runs[plan.blocks[block].runs].steps,
            last = plan.runs[plan.blocks[block + 1].runs].steps;
  for (int s = first; s < last; ++s) {
    for (const std::int32_t row : plan.steps[s].row) {
      if (row >= 0) range.add_rows(row, 16);
      if (row >= kZeroRows) continue;
      for (const std::int32_t half : plan.joins[-2 - row].row)
        if (half >= 0) range.add_rows(half, 8);
    }
  }
  return range;
}

}  // namespace

SourceReads source_reads(const TilePlan& plan, const Layout& source, const Layout& target) {
  std::vector<BlockRange> of_block;
  for (int block = 0; block < target.blocks; ++block) of_block.push_back(read_by(plan, block));
  std::vector<SourceReads::Range> units;
  for (int lot = 0; lot < target.lots; ++lot)
    for (const BlockRange& range : of_block) units.push_back(range.of_lot(lot, source));
  return SourceReads::of(units, source.lots * source.blocks);
}

SourceReads source_reads(const WinogradProduct& p) {
  std::vector<SourceReads::Range> units;
  const Layout& l = p.source;
  for (int chunk = 0; chunk < p.chunks(); ++chunk) {
    SourceReads::Range all{l.lots * l.blocks, 0};
    const int end = std::min((chunk + 1) * WinogradProduct::kChunkRows, p.rows());
    for (int row = chunk * WinogradProduct::kChunkRows; row < end; ++row) {
      const int unit = row / l.lot, lot = unit / p.tiles();
      const int top = unit % p.tiles() / p.tiles_across() * 4 - p.before;
      const int first = std::clamp(top, 0, p.height), last = std::clamp(top + 6, 0, p.height);
      BlockRange range;
      range.add_rows(first * p.width * l.lot, (last - first) * p.width * l.lot);
      const SourceReads::Range mine = range.of_lot(lot, l);
      all = {std::min(all.first, mine.first), std::max(all.last, mine.last)};
    }
    units.push_back(all);
  }
  return SourceReads::of(units, l.lots * l.blocks);
}

}  // namespace convoy::amx
