// This program, started by mpirun (tests/mpi.cmake), holds MPI to the transport's contract: every
// rank runs the same cases at the same time.
#include "world/mpi/mpi_world.h"
#include "world/transport_contract.h"

namespace convoy {

std::vector<ContractWorld> mpi_contract_worlds() {
  if (!started_by_mpi()) return {};
  return {{.name = "mpi",
           .run =
               [](int size, const ContractBody& body) {
                 if (size > mpi_size()) return;  // mpirun with more ranks runs this one
                 run_mpi(size, [&](World world) { body(world, [] {}); });
               },
           .survives_death = false}};
}

}  // namespace convoy
