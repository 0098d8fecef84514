// What servers and workers counted, as one object.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "measure/time_ledger.h"
#include "measure/verdict.h"
#include "sync/ps/client.h"

namespace convoy {

// What a worker has measured so far: its pushes and pulls, its phases, its traffic.
nlohmann::json worker_figures_json(const ClientStatistics& client, const TimeLedger& time);

// `workers` are figures of all workers that were there at the end of an epoch, by worker; null for
// others.
nlohmann::json server_statistics_json(std::span<const nlohmann::json> servers,
                                      std::span<const nlohmann::json> workers,
                                      const ClientStatistics& client);

// Of those workers' figures.
std::vector<RankTotals> totals_of(std::span<const nlohmann::json> workers);

}  // namespace convoy
