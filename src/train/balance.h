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

// What a step costs a worker, by its samples: a part for each step and a part for each sample, from
// what it was seen to take. Small shares cost more than their samples (kernels work on whole
// blocks), so that a slow worker may not be worth a share at all.
class StepCost {
 public:
  // A step with so many samples took so long. Steps without samples tell nothing.
  void see(double samples, double seconds);

  bool known() const { return latest_.samples > 0; }
  double per_step_s() const;
  double per_sample_s() const;
  // 0 for no samples: it need not take part.
  double seconds(double samples) const {
    return samples > 0 ? per_step_s() + samples * per_sample_s() : 0;
  }

 private:
  struct Seen {
    double samples = 0, seconds = 0;
  };
  Seen latest_, other_;  // other: the last with a share that differed much
};

// Samples of a batch for each worker, so that the last of them is done as early as can be: those of
// the batch in all. All costs are known.
std::vector<int> balanced(int batch, std::span<const StepCost> costs);

// The same; nothing where a step would not become at least a twentieth shorter than with shares in
// proportion to `weights`, or where a cost is not known yet.
std::vector<int> rebalanced(int batch, std::span<const int> weights,
                            std::span<const StepCost> costs);

}  // namespace convoy
