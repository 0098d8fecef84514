// How the ranks of a host divide its cores.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace convoy {

struct CoreShares {
  std::vector<std::vector<int>> of_rank;  // cores to pin to; empty: not pinned
  int per_rank = 1;                       // that a rank may count on
  bool oversubscribed = false;            // ranks outnumber cores: waiting must not spin
  std::string text() const;               // "4 ranks, 2 cores each, pinned"
};

// The cores that this process may run on, ascending.
std::vector<int> own_cores();

// Contiguous, equally large sets; `per_rank` 0 takes all there are. Ranks that outnumber the cores
// are not pinned. `limit` is how many cores' worth of time there is (a quota may allow less than
// the list). Throws ConfigError where `per_rank` asks for more than there is.
CoreShares divide_cores(std::span<const int> cores, int limit, int ranks, int per_rank);

}  // namespace convoy
