#include "kernels/amx/layout.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace convoy::amx {

namespace {

TEST(Layout, CutsPlanesIntoShortAndEqualPieces) {
  for (const int batch : {1, 8, 9, 16, 33, 128}) {
    for (const int positions : {1, 4, 16, 49, 196, 784, 3136, 224 * 224}) {
      const Layout l = make_layout(batch, 40, positions);
      EXPECT_EQ(l.piece_begin(0), 0);
      EXPECT_EQ(l.piece_begin(l.pieces), l.blocks);
      for (int piece = 0; piece < l.pieces; ++piece) {
        const int begin = l.piece_begin(piece), end = l.piece_begin(piece + 1);
        ASSERT_GE(end - begin, l.blocks / l.pieces);
        ASSERT_LE(end - begin, l.blocks / l.pieces + 1);
        ASSERT_LE(end - begin, 16);
        for (int block = begin; block < end; ++block) ASSERT_EQ(l.piece_of(block), piece);
      }
      EXPECT_GE(l.partials(), std::min(8, l.blocks * l.lots));  // for some threads
    }
  }
}

}  // namespace

}  // namespace convoy::amx
