// MPI's own all-reduce. This folder alone knows mpi.h.
#pragma once

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <memory>

#include "world/native_collectives.h"

namespace convoy {

// Throws TransportError with MPI's own words.
void expect_success(int code, const char* what);

// Among the ranks of `world`, all of which must call this. Its communicators stay until MPI ends.
std::unique_ptr<NativeCollectives> make_mpi_collectives(MPI_Comm world);

}  // namespace convoy
