// Where workers of one host share memory, they add up gradients where those lie; and where all of
// them are on one host, there is one set of weights, of which each worker updates a part.
#pragma once

#include "nn/parameters.h"
#include "optim/optimizer.h"
#include "train/workers.h"
#include "world/world.h"

namespace convoy {

// All workers make these calls, before the first batch. Memory is the transport's and outlives
// `parameters`.

// Moves the gradients into memory that the workers of this host share, if there is any.
void share_gradients(Workers& workers, World world, Parameters& parameters);

// After share_gradients(): where all workers share memory.
bool shares_everything(World world);
// There: moves values into memory that all share, with what worker 0 has.
void share_values(Workers& workers, World world, Parameters& parameters);
void share_state(Workers& workers, World world, Optimizer& optimizer);

}  // namespace convoy
