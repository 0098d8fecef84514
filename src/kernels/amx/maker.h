// Makes the source of a product (making.h) while its products run, within a team of threads. Only
// for kernels (*_amx.cc).
#pragma once

#include "kernels/amx/lanes.h"
#include "kernels/amx/product.h"

namespace convoy::amx {

// One thread's part: what its units are the first to read.
class Maker {
 public:
  Maker(const Layout& source, const SourceMaking& making) : layout_(&source), making_(making) {}

  // The thread has units [first, last). What later units read of its part is made at once, and all
  // threads of the team meet; the rest is made when it is asked for.
  void begin(std::size_t first, std::size_t last) {
    if (!making_.how) return;
    next_ = making_.until[first];
    const int end = making_.until[last];
    stop_ = making_.from[last] > next_ ? making_.from[last] : next_;
    if (stop_ < end) make(stop_, end);
    if (stop_ > end) stop_ = end;
    meet();
  }

  // For teams of which every thread reads everything.
  void make_share(int thread, int team) {
    if (!making_.how) return;
    const std::size_t blocks = std::size_t(layout_->lots) * layout_->blocks;
    make(int(share(blocks, thread, team)), int(share(blocks, thread + 1, team)));
    meet();
  }

  // What units before `unit` read.
  void make_for(std::size_t unit) {
    if (!making_.how) return;
    const int end = making_.until[unit] < stop_ ? making_.until[unit] : stop_;
    if (next_ >= end) return;
    make(next_, end);
    next_ = end;
  }

 private:
  static void meet() {
#pragma omp barrier
  }

  // Blocks of all planes, counted over all lots.
  void make(int first, int last) const {
    const Layout& l = *layout_;
    for (int at = first, end; at < last; at = end) {
      const int lot = at / l.blocks;
      end = (lot + 1) * l.blocks < last ? (lot + 1) * l.blocks : last;
      for (int plane = 0; plane < l.planes; ++plane)
        make_blocks(l, *making_.how, lot, plane, at - lot * l.blocks, end - lot * l.blocks);
    }
  }

  const Layout* layout_;
  SourceMaking making_;
  int next_ = 0, stop_ = 0;
};

}  // namespace convoy::amx
