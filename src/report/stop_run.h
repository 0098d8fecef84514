// Asking a run to stop.
#pragma once

#include "measure/store.h"

namespace convoy {

// Sends SIGINT to the run's leading worker: it finishes the step, saves, and ends, as after Ctrl-C.
// Throws ConfigError where the run does not run, or not on this machine.
void stop_run(const RunRow& run);

}  // namespace convoy
