// Runs as Prometheus reads them.
#pragma once

#include <string>

#include "measure/store.h"

namespace convoy {

// How many runs there are in each state, and of those that run: steps, speed, losses, the ledger of
// each rank, processor time and memory. In the text format of version 0.0.4.
std::string prometheus_text(Store& store);

}  // namespace convoy
