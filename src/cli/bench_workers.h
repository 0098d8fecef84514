// Training steps on several workers, timed one by one.
#pragma once

#include <vector>

#include "data/batch.h"
#include "nn/model.h"
#include "world/world.h"

namespace convoy {

struct WorkerSteps {
  const Batch& part;   // this worker's, trained on again and again
  int global = 0;      // samples of all workers
  double seconds = 5;  // how long to measure, at least three steps
  int steps = 0;       // measure this many instead
};

// All workers call it. Gradients travel as in training, in pieces that are planned in the first
// steps. Returns what each step took, as the mean over the workers, and leaves the world.
std::vector<double> time_worker_steps(World world, Model& model, const WorkerSteps& options);

}  // namespace convoy
