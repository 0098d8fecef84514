#include "world/shm/shm_test_support.h"
#include "world/transport_contract.h"

namespace convoy {
namespace {

struct Died {};

// A thread cannot be killed alone: one that dies drops its transport.
void run_contract_threads(int size, const ContractBody& body) {
  shm::run_threads(shm::small_segment(size), [&](World world) {
    try {
      body(world, [] { throw Died{}; });
    } catch (const Died&) {
    }
  });
}

void run_contract_processes(int size, const ContractBody& body) {
  shm::Segment segment = shm::Segment::create(shm::small_segment(size));
  shm::Processes ranks(segment, [&](World world) { body(world, [] { kill(getpid(), SIGKILL); }); });
  ranks.expect_well_or_killed();
}

}  // namespace

std::vector<ContractWorld> shm_contract_worlds() {
  return {{.name = "shm_threads", .run = run_contract_threads},
          {.name = "shm_processes", .run = run_contract_processes}};
}

}  // namespace convoy
