// What servers and workers counted, as one object.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "measure/time_ledger.h"
#include "sync/ps/client.h"

namespace convoy {

nlohmann::json server_statistics_json(std::span<const nlohmann::json> servers,
                                      const ClientStatistics& client, const TimeLedger& time);

}  // namespace convoy
