#include "measure/time_ledger.h"

#include <algorithm>

namespace convoy {

void TimeLedger::open(int epoch) {
  const auto found = std::find_if(fresh_.begin(), fresh_.end(),
                                  [&](const Sums& sums) { return sums.epoch == epoch; });
  if (found == fresh_.end())
    fresh_.push_back({.epoch = epoch});
  else
    std::rotate(found, found + 1, fresh_.end());
}

void TimeLedger::take(int rank, std::int64_t steps, Records& records) {
  for (const Sums& sums : fresh_)
    for (std::size_t phase = 0; phase < kPhases; ++phase)
      if (sums.seconds[phase] != 0)
        records.ledger.push_back({.rank = rank,
                                  .epoch = sums.epoch,
                                  .phase = std::int32_t(phase),
                                  .seconds = sums.seconds[phase]});
  fresh_.clear();
  for (std::size_t node = 0; node < layers_.size(); ++node) {
    Layer& layer = layers_[node];
    if (layer.forward_s == 0 && layer.backward_s == 0) continue;
    records.layers.push_back({.rank = rank,
                              .epoch = epoch_,
                              .node = std::int32_t(node),
                              .steps = steps,
                              .forward_s = layer.forward_s,
                              .backward_s = layer.backward_s});
    layer = {};
  }
}

}  // namespace convoy
