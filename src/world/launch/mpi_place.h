// The place of a process that mpirun or srun started.
#pragma once

#include <optional>
#include <string>

namespace convoy {

struct MpiPlace {
  int rank = 0;
  int size = 1;
  int local_rank = 0;   // among the ranks of this host
  int local_size = 0;   // 0: not known
  std::string starter;  // mpirun or srun
};

// Nothing when neither started this process. Throws ConfigError where their variables contradict
// each other.
std::optional<MpiPlace> place_from_mpi_environment();

}  // namespace convoy
