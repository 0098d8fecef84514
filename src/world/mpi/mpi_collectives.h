// MPI's own all-reduce. This folder alone knows mpi.h.
#pragma once

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <memory>
#include <vector>

#include "world/native_collectives.h"

namespace convoy {

// Throws TransportError with MPI's own words.
void expect_success(int code, const char* what);

// How often a rank that waits says where it is.
inline constexpr double kTellEvery_s = 0.25;

// What the ranks know of each other.
class Presence {
 public:
  virtual ~Presence() = default;
  // Hears where the others are, and says where this rank is, if it has not done so lately.
  virtual void keep_in_touch() = 0;
  // Ranks that have not come to where this one is; where some of them were not heard of for so
  // long, only those: the others may wait for them too.
  virtual std::vector<int> absent(double silent_s) = 0;
};

// Among the ranks of `world`, all of which must call this. Its communicators stay until MPI ends.
// While the owner is in a call, a thread uses `presence`.
std::unique_ptr<NativeCollectives> make_mpi_collectives(MPI_Comm world, Presence& presence);

}  // namespace convoy
