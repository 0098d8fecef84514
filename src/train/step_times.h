// The times from which the travel of gradients is planned, as all workers agree on them.
#pragma once

#include "sync/bucket_plan.h"
#include "sync/comm_task.h"

namespace convoy {

// `own` is what this worker saw (nothing where it had no samples); for each moment the latest of
// all workers counts. Also times two all-reduces, of a small and of a large buffer.
StepTimes agreed_times(CommTask& comm, StepTimes own, std::size_t layers,
                       std::size_t gradient_bytes);

}  // namespace convoy
