#include "world/rank_killed.h"
#include "world/sim/sim.h"
#include "world/transport_contract.h"

namespace convoy {
namespace {

ContractWorld sim_world(std::string name, const std::vector<int>& hosts,
                        const SimOptions& options) {
  const auto run = [=](int size, const ContractBody& body) {
    Cluster cluster{.ranks = size};
    for (int rank = 0; !hosts.empty() && rank < size; ++rank)
      cluster.host_of.push_back(hosts[rank % hosts.size()]);
    run_sim(cluster, options, [&](World world) { body(world, [] { throw RankKilled{}; }); });
  };
  return {.name = std::move(name), .run = run};
}

}  // namespace

std::vector<ContractWorld> sim_contract_worlds() {
  return {sim_world("sim", {}, {}), sim_world("sim_hosts", {0, 1, 1}, {.seed = 7}),
          sim_world("sim_without_bytes", {0}, {.seed = 8, .carries_bytes = false})};
}

}  // namespace convoy
