#include "world/inproc/inproc.h"
#include "world/transport_contract.h"

namespace convoy {
namespace {

ContractWorld inproc_world(std::string name, const std::vector<int>& hosts) {
  const auto run = [hosts](int size, const ContractBody& body) {
    InprocFaults faults;
    InprocOptions options{.faults = &faults};
    for (int rank = 0; !hosts.empty() && rank < size; ++rank)
      options.host_of.push_back(hosts[rank % hosts.size()]);
    run_inproc(size, options, [&](World world) {
      body(world, [&] {
        faults.kill(world.transport.rank());
        world.transport.wake();
        world.transport.wait_any({}, kForever);
      });
    });
  };
  return {.name = std::move(name), .run = run};
}

}  // namespace

std::vector<ContractWorld> inproc_contract_worlds() {
  return {inproc_world("inproc", {}), inproc_world("inproc_hosts", {0, 1, 1})};
}

}  // namespace convoy
