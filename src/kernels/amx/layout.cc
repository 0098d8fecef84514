#include "kernels/amx/layout.h"

#include <algorithm>
#include <utility>

namespace convoy::amx {

namespace {

constexpr int kMostBlocks = 16;     // of a piece
constexpr int kFewestPartials = 8;  // where there are as many blocks

int parts(int whole, int part) { return (whole + part - 1) / part; }

}  // namespace

// The lot that wastes the least on padding; small lots cost a little more per row.
int lot_of(int batch) {
  int best = 32;
  double best_cost = 1e30;
  for (const auto& [lot, price] : {std::pair{32, 1.0}, std::pair{16, 1.05}, std::pair{8, 1.15}}) {
    const double cost = double((batch + lot - 1) / lot * lot) * price;
    if (cost < best_cost) {
      best = lot;
      best_cost = cost;
    }
  }
  return best;
}

Layout make_layout(int batch, int channels, int positions) {
  Layout l;
  l.batch = batch;
  l.channels = channels;
  l.positions = positions;
  l.lot = lot_of(batch);
  l.lots = parts(batch, l.lot);
  l.planes = parts(channels, kLanes);
  l.blocks = parts(positions * l.lot, kLanes);
  l.pieces =
      std::max(parts(l.blocks, kMostBlocks), std::min(l.blocks, parts(kFewestPartials, l.lots)));
  for (int last_lot = 0; last_lot < 2; ++last_lot) {
    for (int last_block = 0; last_block < 2; ++last_block) {
      const int images = last_lot ? batch - (l.lots - 1) * l.lot : l.lot;
      const int left = last_block ? positions * l.lot - (l.blocks - 1) * kLanes : kLanes;
      for (int row = 0; row < kLanes; ++row) {
        if (row < left && row % l.lot < images) l.masks[last_lot][last_block] |= 1u << row;
      }
    }
  }
  return l;
}

}  // namespace convoy::amx
