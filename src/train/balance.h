// Shares of every batch for workers of unequal speed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/loader.h"

namespace convoy {

// What --balance asks for: "equal", "auto" or a weight for each worker as in "20:1".
struct Balance {
  bool automatic = false;
  std::vector<int> weights;  // one for each worker
};
// Throws ConfigError where the text is not one of these, or has another number of weights.
Balance parse_balance(const std::string& text, int workers);

// The share of `worker` when shares are in proportion to the weights.
BatchShare share_of(std::span<const int> weights, int worker);

// Samples of a batch for each worker, in proportion to speeds (images per second): those of the
// batch in all, and at least one for each while there are enough, so that everybody's speed can be
// measured again. A speed of 0 means unknown: the mean of the others is taken.
std::vector<int> balanced(int batch, std::span<const double> speeds);

// What measured speeds ask for: nothing where the slowest worker of a step would not become at
// least a twentieth faster. `weights` are the present ones.
std::vector<int> rebalanced(int batch, std::span<const int> weights,
                            std::span<const double> speeds);

}  // namespace convoy
