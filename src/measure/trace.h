// The sampled steps of a run in the trace format of Chrome and Perfetto: a process for each rank
// with a thread each for computation, communication and the optimizer; arrows lead from the rank
// that came last to a collective to all that waited for it.
#pragma once

#include <string>

#include "measure/store.h"

namespace convoy {

inline constexpr std::size_t kMostTraceBytes = 20 << 20;

// JSON text, of at most kMostTraceBytes: the first steps that fit. Throws DataError where the run
// has no step in detail.
std::string trace_text(Store& store, const RunRow& run);

}  // namespace convoy
