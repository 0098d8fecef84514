// Ranks that mpirun or srun started, with messages through MPI: for HPC fabrics, shared memory and
// Slurm. Open MPI makes progress only inside calls into it, so whoever waits drives it: spins
// briefly, then yields, then sleeps ever longer (up to a fiftieth of what it has waited). It cannot
// survive a dead rank: mpirun then ends the whole job and names the rank. A rank that stops
// answering shows by the deadline of the wait.
#pragma once

#include <memory>

#include "world/job.h"
#include "world/world.h"

namespace convoy {

// Whether mpirun, or srun with PMIx, started this process.
bool started_by_mpi();

// Starts MPI, once per process; returns when every rank is there. When the process ends without
// close() on its transport, MPI_Abort ends the other ranks too.
std::unique_ptr<Membership> join_mpi();

// Runs body on the first `size` ranks of the job while the others wait; for tests, where every rank
// makes the same calls. Throws what the own rank's body threw.
void run_mpi(int size, const RankBody& body);

// How many ranks the job has. Starts MPI.
int mpi_size();

}  // namespace convoy
