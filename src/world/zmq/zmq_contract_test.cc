#include "world/transport_contract.h"
#include "world/zmq/zmq_test_support.h"

namespace convoy {
namespace {

ContractWorld threads(std::string name, ZmqTestOptions options) {
  const auto run = [options](int size, const ContractBody& body) {
    ZmqTestOptions sized = options;
    sized.size = size;
    run_zmq_threads(sized, body);
  };
  return {.name = std::move(name), .run = run};
}

void run_processes(int size, const ContractBody& body) {
  ZmqProcesses ranks(size, [&](World world) { body(world, [] { kill(getpid(), SIGKILL); }); });
  const TestJob job({.size = size});
  ranks.start(job);
  ranks.expect_well_or_killed();
}

}  // namespace

std::vector<ContractWorld> zmq_contract_worlds() {
  ContractWorld plain = threads("zmq_plain", {.encrypt = false});
  plain.slow = true;
  return {threads("zmq", {}),
          plain,
          threads("zmq_hosts", {.encrypt = false, .hosts = 2}),
          {.name = "zmq_processes", .run = run_processes}};
}

}  // namespace convoy
