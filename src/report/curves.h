// What changes in the course of a run, thinned out so that a chart loses nothing that it could
// show.
#pragma once

#include <nlohmann/json.hpp>

#include "measure/store.h"

namespace convoy {

// The steps of all workers together, in at most `most` rows; a row keeps the mean, the least and
// the greatest of the steps that share it.
nlohmann::json step_columns(Store& store, std::int64_t run, std::size_t most);

nlohmann::json epoch_columns(Store& store, std::int64_t run);

// What each process and its host used, and what each rank sent and received, as rates between
// neighbouring samples. `most` rows for each process and rank, which are at most kMostCurves.
inline constexpr int kMostCurves = 24;
nlohmann::json resource_series(Store& store, std::int64_t run, std::size_t most);
nlohmann::json traffic_series(Store& store, std::int64_t run, std::size_t most);

}  // namespace convoy
