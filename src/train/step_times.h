// How the gradients of a run travel, planned from the times of its first steps, as all workers
// agree on them.
#pragma once

#include "sync/allreduce_strategy.h"
#include "train/worker.h"

namespace convoy {

// `own` is what this worker saw (nothing where it had no samples); for each moment the latest of
// all workers counts. Also times two all-reduces, of a small and of a large buffer.
StepTimes agreed_times(CommTask& comm, StepTimes own, std::size_t layers,
                       std::size_t gradient_bytes);

// Between two steps: the strategy and the worker go on by the plan that is best for what the worker
// has watched. Gives the times that it was made from.
StepTimes replan(CommTask& comm, const Parameters& parameters, Worker& worker,
                 AllReduceStrategy& strategy);

}  // namespace convoy
