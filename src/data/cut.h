// Which samples of a set are wanted: the first ones, and of those one of several equal parts.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/part.h"

namespace convoy {

struct Cut {
  std::size_t limit = 0;  // the first so many; 0: all
  int part = 0;           // of these
  int parts = 1;

  // How many samples all parts have together, of a set that has `samples`.
  std::size_t whole(std::size_t samples) const {
    return limit > 0 ? std::min(limit, samples) : samples;
  }
  Range of(std::size_t samples) const { return part_of(whole(samples), parts, part); }
};

}  // namespace convoy
