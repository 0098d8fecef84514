#include "sync/ps/server_statistics.h"

#include <algorithm>

namespace convoy {

void ServerStatistics::see_staleness(std::uint32_t epoch, std::int64_t behind) {
  if (staleness.size() <= epoch) staleness.resize(std::size_t(epoch) + 1);
  std::vector<std::int64_t>& histogram = staleness[epoch];
  if (std::int64_t(histogram.size()) <= behind) histogram.resize(std::size_t(behind) + 1);
  ++histogram[std::size_t(behind)];
}

std::int64_t ServerStatistics::most_stale() const {
  std::size_t most = 0;
  for (const std::vector<std::int64_t>& histogram : staleness)
    most = std::max(most, histogram.size());
  return most > 0 ? std::int64_t(most) - 1 : 0;
}

nlohmann::json ServerStatistics::to_json() const {
  return {{"weight_updates", weight_updates},
          {"slice_updates", updates},
          {"pushes", pushes},
          {"applied", applied},
          {"dropped", dropped},
          {"repeated", repeated},
          {"refused", refused},
          {"lost_workers", lost_workers},
          {"update_s", update.sum_s()},
          {"update", update.to_json()},
          {"wait", wait.to_json()},
          {"staleness", staleness},
          {"bytes_in", traffic.bytes_in},
          {"bytes_out", traffic.bytes_out},
          {"messages_in", traffic.messages_in},
          {"messages_out", traffic.messages_out}};
}

}  // namespace convoy
