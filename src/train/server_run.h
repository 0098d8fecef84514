// A run with parameter servers: the first ranks are workers, the others servers.
#pragma once

#include "train/setup.h"

namespace convoy {

// Every rank calls it; see train().
TrainResult train_with_servers(const TrainRequest& request, const ResolvedConfig& resolved,
                               World world, const InterruptGuard& interrupt, std::FILE* human);

}  // namespace convoy
