// Where workers of one host share memory, they add up gradients where those lie.
#pragma once

#include "nn/parameters.h"
#include "train/workers.h"
#include "world/world.h"

namespace convoy {

// Moves the gradients into memory that the workers of this host share, if there is any. All workers
// call it, before the first batch; the memory is the transport's and outlives `parameters`.
void share_gradients(Workers& workers, World world, Parameters& parameters);

}  // namespace convoy
