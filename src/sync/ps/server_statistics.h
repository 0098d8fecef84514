// What a server counts and times.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "sync/ps/courier.h"
#include "sync/ps/timings.h"

namespace convoy {

struct ServerStatistics {
  std::int64_t updates = 0;         // of slices
  std::int64_t weight_updates = 0;  // of its most updated slice
  std::int64_t pushes = 0;          // that were taken, of slices
  std::int64_t applied = 0;         // of them, those that moved weights
  std::int64_t dropped = 0;         // those that came too late to count
  std::int64_t repeated = 0;        // that a server which is lost had dealt with, and not counted
  std::int64_t refused = 0;         // pushes that were faulty
  std::int64_t lost_workers = 0;
  std::vector<std::int64_t> applied_by;                // by worker
  std::vector<std::vector<std::int64_t>> staleness{};  // by epoch: pushes by staleness
  Timings update;                                      // a slice
  Timings wait;                                        // from a push to its answer
  Traffic traffic{};

  void see_staleness(std::uint32_t epoch, std::int64_t behind);
  std::int64_t most_stale() const;
  nlohmann::json to_json() const;
};

}  // namespace convoy
