// The family where it is, the choice where it is not, and what does not need tiles.
#include "kernels/amx/family.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/amx/layout.h"
#include "kernels/amx/ops.h"
#include "kernels/amx/windows.h"
#include "kernels/cpu.h"

namespace convoy::amx {

namespace {

TEST(AmxFamily, IsThereWhereItsKernelsRun) {
#if defined(CONVOY_ON_AVX2)
  const bool suffices = true;
  const std::string name = "avx2";
#elif defined(CONVOY_ON_AVX512)
  const bool suffices = cpu().avx512_bf16;
  const std::string name = "avx512_bf16";
#else
  const bool suffices = cpu().amx_works;
  const std::string name = "amx";
#endif
  ASSERT_EQ(is_usable(), suffices);
  if (suffices) {
    EXPECT_EQ(make_family()->name(), name);
  } else {
    EXPECT_DEATH(make_family(), "this CPU cannot run the family " + name);
  }
}

TEST(AmxLayout, LotsWasteLittle) {
  EXPECT_EQ(lot_of(128), 32);
  EXPECT_EQ(lot_of(32), 32);
  EXPECT_EQ(lot_of(16), 16);
  EXPECT_EQ(lot_of(8), 8);
  EXPECT_EQ(lot_of(1), 8);
  EXPECT_EQ(lot_of(40), 8);
  EXPECT_EQ(lot_of(96), 32);
}

TEST(AmxLayout, MasksRowsOfTheLastLotAndBlock) {
  const Layout l = make_layout(20, 33, 3);  // lots of 8: 8, 8, 4 images; four positions to a block
  ASSERT_EQ(l.lot, 8);
  EXPECT_EQ(l.lots, 3);
  EXPECT_EQ(l.planes, 2);
  EXPECT_EQ(l.blocks, 1);
  EXPECT_EQ(l.rows(0, 0), 0x00ffffffu);
  EXPECT_EQ(l.rows(2, 0), 0x000f0f0fu);
}

TEST(AmxWindows, InverseOfInverseIsTheSame) {
  const Windows w = sliding_windows({.height = 7,
                                     .width = 5,
                                     .out_height = 4,
                                     .out_width = 3,
                                     .kernel = 3,
                                     .stride = 2,
                                     .padding = 1});
  const Windows back = inverse(inverse(w));
  ASSERT_EQ(back.begin, w.begin);
  for (std::size_t i = 0; i < w.references.size(); ++i) {
    EXPECT_EQ(back.references[i].source, w.references[i].source);
    EXPECT_EQ(back.references[i].tap, w.references[i].tap);
  }
}

TEST(AmxWindows, SmallLotsJoinPositionsThatDoNotLieTogether) {
  const Windows w =
      sliding_windows({.height = 1, .width = 4, .out_height = 1, .out_width = 2, .stride = 2});
  const TilePlan plan = plan_tiles(w, 8);  // both positions in the first tile of one block
  ASSERT_EQ(plan.steps.size(), 1u);
  ASSERT_EQ(plan.joins.size(), 1u);
  EXPECT_EQ(plan.steps[0].row[0], -2);
  EXPECT_EQ(plan.steps[0].row[1], kZeroRows);
  EXPECT_EQ(plan.joins[0].row[0], 0);
  EXPECT_EQ(plan.joins[0].row[1], 16);
}

Windows three_by_three(int height, int width, int stride) {
  return sliding_windows({.height = height,
                          .width = width,
                          .out_height = (height - 1) / stride + 1,
                          .out_width = (width - 1) / stride + 1,
                          .kernel = 3,
                          .stride = stride,
                          .padding = 1});
}

// For each target row, the taps and source positions of its products in the order in which they are
// added up.
std::map<int, std::vector<std::pair<int, int>>> sums_by_row(const TilePlan& plan, int lot) {
  std::map<int, std::vector<std::pair<int, int>>> sums;
  for (std::size_t b = 0; b + 1 < plan.blocks.size(); ++b) {
    const int first = plan.runs[plan.blocks[b].runs].steps;
    const int last = plan.runs[plan.blocks[b + 1].runs].steps;
    for (int s = first; s < last; ++s) {
      const TileStep& step = plan.steps[s];
      for (int row = 0; row < 32; ++row) {
        int from = step.row[row / 16];
        if (from <= -2) {
          const TileJoin& join = plan.joins[-2 - from];
          from = join.row[row % 16 / 8];
          if (from >= 0) from += row % 8;
        } else if (from >= 0) {
          from += row % 16;
        }
        if (from < 0) continue;
        const int to = plan.blocks[b].row[row / 16] + row % 16;
        EXPECT_EQ(from % lot, to % lot);  // the same image
        sums[to].push_back({step.tap, from / lot});
      }
    }
  }
  return sums;
}

TEST(AmxWindows, EveryPlanMakesTheSameSumsInTheSameOrder) {
  for (const int stride : {1, 2}) {
    for (const int width : {6, 7}) {
      const Windows forward = three_by_three(9, width, stride);
      for (const Windows& w : {forward, inverse(forward)}) {
        std::vector<std::vector<std::pair<int, int>>> wanted;
        for (const int lot : {32, 16, 8}) {
          const TilePlan plan = plan_tiles(w, lot);
          EXPECT_EQ(int(plan.blocks.size()) - 1, (w.targets * lot + 31) / 32);
          auto sums = sums_by_row(plan, lot);
          for (int t = 0; t < w.targets; ++t) {
            const auto& mine = sums[t * lot];
            if (lot == 32) wanted.push_back(mine);
            EXPECT_EQ(mine, wanted[t]) << "lot " << lot << " target " << t;
            EXPECT_EQ(int(mine.size()), w.begin[t + 1] - w.begin[t]);
            for (int image = 1; image < lot; ++image) EXPECT_EQ(sums[t * lot + image], mine);
          }
        }
      }
    }
  }
}

TEST(AmxWindows, RowsOfTheMapArePairedSoThatTilesServeTwice) {
  const Windows w = three_by_three(4, 4, 1);
  for (const int lot : {32, 16, 8}) {
    const TilePlan plan = plan_tiles(w, lot);
    const int row = 4 * lot;
    EXPECT_EQ(plan.blocks[0].row[0], 0);
    EXPECT_EQ(plan.blocks[0].row[1], row);
    int held = 0;
    for (const TileStep& step : plan.steps) held += step.held;
    EXPECT_GT(held, int(plan.steps.size()) / 3) << "lot " << lot;
  }
  // Backward with stride 2, the next row reads by other taps, and the one after it by the same.
  const TilePlan plan = plan_tiles(inverse(three_by_three(8, 8, 2)), 16);
  EXPECT_EQ(plan.blocks[0].row[1], 2 * 8 * 16);
}

TEST(AmxWeights, StoredAndPlainAgree) {
  for (const int groups : {1, 3}) {
    for (const bool first : {false, true}) {
      OpSpec spec;
      spec.layer = Convolution{.channels = 36, .kernel = 3, .groups = groups};
      spec.inputs = {{9, 5, 5}};
      spec.output = {36, 3, 3};
      spec.batch = 4;
      spec.first = first;
      const auto layout = make_product_weights(spec);
      std::vector<float> plain(36 * 9 / groups * 9), stored(layout->stored_count(), -1),
          again(plain);
      std::iota(plain.begin(), plain.end(), 1.0f);
      layout->from_plain(plain.data(), stored.data());
      layout->to_plain(stored.data(), again.data());
      EXPECT_EQ(plain, again);
      // What is not plain is zero.
      EXPECT_EQ(std::accumulate(plain.begin(), plain.end(), 0.0),
                std::accumulate(stored.begin(), stored.end(), 0.0));
    }
  }
}

}  // namespace

}  // namespace convoy::amx
