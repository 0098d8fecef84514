#include "train/server_summary.h"

#include <algorithm>

#include "train/records.h"

namespace convoy {
namespace {

using nlohmann::json;

// Histograms by epoch, added up over servers.
json added_histograms(std::span<const json> servers) {
  std::vector<std::vector<std::int64_t>> sums;
  for (const json& server : servers) {
    const auto own = server.at("staleness").get<std::vector<std::vector<std::int64_t>>>();
    sums.resize(std::max(sums.size(), own.size()));
    for (std::size_t epoch = 0; epoch < own.size(); ++epoch) {
      sums[epoch].resize(std::max(sums[epoch].size(), own[epoch].size()));
      for (std::size_t i = 0; i < own[epoch].size(); ++i) sums[epoch][i] += own[epoch][i];
    }
  }
  return sums;
}

}  // namespace

json worker_figures_json(const ClientStatistics& client, const TimeLedger& time) {
  const double training_s = time.training_s();
  const double idle_s = time.seconds(Phase::wait) + time.seconds(Phase::communication);
  return {{"push", client.push.to_json()},
          {"pull", client.pull.to_json()},
          {"idleness", training_s > 0 ? idle_s / training_s : 0},
          {"phases_s", phases_json(time)},
          {"wall_s", time.wall_s()},
          {"bytes_in", client.traffic.bytes_in},
          {"bytes_out", client.traffic.bytes_out},
          {"messages_in", client.traffic.messages_in},
          {"messages_out", client.traffic.messages_out}};
}

json server_statistics_json(std::span<const json> servers, std::span<const json> workers,
                            const ClientStatistics& client) {
  std::int64_t updates = 0, dropped = 0, refused = 0, lost = 0;
  double update_s = 0, idleness = 0;
  for (const json& server : servers) {
    updates = std::max(updates, server.at("weight_updates").get<std::int64_t>());
    dropped += server.at("dropped").get<std::int64_t>();
    refused += server.at("refused").get<std::int64_t>();
    lost = std::max(lost, server.at("lost_workers").get<std::int64_t>());
    update_s = std::max(update_s, server.at("update_s").get<double>());
  }
  int known = 0;
  for (const json& worker : workers) {
    if (worker.is_null()) continue;
    idleness += worker.at("idleness").get<double>();
    ++known;
  }
  return {{"weight_updates", updates},
          {"time_per_update_ms", updates > 0 ? 1e3 * update_s / double(updates) : 0},
          {"dropped", dropped},
          {"refused", refused},
          {"lost_workers", lost},
          {"lost_servers", client.lost_servers},
          {"lost_updates", client.lost_updates},
          {"lost_gradients", client.lost_gradients},
          {"push", client.push.to_json()},
          {"pull", client.pull.to_json()},
          {"idleness", known > 0 ? idleness / known : 0},
          {"staleness", added_histograms(servers)},
          {"workers", workers},
          {"servers", servers}};
}

std::vector<RankTotals> totals_of(std::span<const json> workers) {
  std::vector<RankTotals> totals;
  for (const json& worker : workers) {
    if (worker.is_null()) continue;
    RankTotals& own = totals.emplace_back();
    own.wall_s = worker.at("wall_s");
    for (std::size_t i = 0; i < kPhases; ++i)
      own.seconds[i] = worker.at("phases_s").at(std::string(kPhaseNames[i]));
  }
  return totals;
}

}  // namespace convoy
