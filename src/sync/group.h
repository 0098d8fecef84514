// Some of the ranks of a world, in an order: a ring, a row of a torus, the first rank of every
// host.
#pragma once

#include <vector>

namespace convoy {

struct Group {
  std::vector<int> ranks;
  int index = 0;  // the own rank's place in ranks

  int size() const { return static_cast<int>(ranks.size()); }
  int rank() const { return ranks[index]; }
};

}  // namespace convoy
