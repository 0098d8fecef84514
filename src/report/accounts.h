// Where a run's time went, rank by rank, layer by layer and in one step.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "measure/store.h"

namespace convoy {

// The phases of the ledger in the order in which a bar shows them.
const std::vector<std::string>& stacked_phases();

// Of at most `most` ranks, with their phases and for whom they waited.
nlohmann::json rank_accounts(Store& store, std::int64_t run, std::size_t most);

// Mean times of a step. Null times where none were recorded.
nlohmann::json layer_accounts(Store& store, std::int64_t run);

// A typical one of the sampled steps, of the first ranks, with at most `most` spans; null where none
// was sampled.
nlohmann::json step_timeline(Store& store, std::int64_t run, std::size_t most);

// Parameter server: null, or how far gradients were behind.
nlohmann::json staleness_account(Store& store, std::int64_t run);

// By worker and epoch: the share of its training in which it waited or communicated. Empty where
// workers never do.
nlohmann::json idleness(Store& store, std::int64_t run);

nlohmann::json latencies(Store& store, std::int64_t run);
nlohmann::json happenings(Store& store, std::int64_t run, std::size_t most);

}  // namespace convoy
