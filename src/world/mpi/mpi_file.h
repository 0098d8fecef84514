// Files that all ranks of an MPI job read together, through MPI-IO.
#pragma once

#include <filesystem>
#include <memory>

#include "data/byte_source.h"

namespace convoy {

// Every rank of the job opens the same files, and makes the same number of reads of each, in the
// same order; what they read, and how much, may differ. Each call returns when MPI has the own
// rank's bytes. MPI must have been started (join_mpi). Throws DataError that names the file and
// says what MPI says; a rank that fails alone must end, which ends the job.
std::unique_ptr<ByteSource> open_mpi_bytes(const std::filesystem::path& path);

}  // namespace convoy
