// A batch that made something infinite or no number, kept so that it can be looked into: the
// weights as they were before it, the configuration and the samples, as a checkpoint in the run's
// folder `replay`.
#pragma once

#include <string>
#include <vector>

#include "train/setup.h"

namespace convoy {

// Writes it down; returns how to run it again, or nothing where it cannot be written: the failure
// itself is what matters then.
std::string keep_case(const RunParts& parts, const NotFinite& found);

struct Replay {
  std::string recorded;                // what was found when it happened
  std::string found;                   // what is found now; empty: everything is finite
  std::vector<std::uint32_t> samples;  // of the batch
  std::vector<std::uint32_t> alone;    // those that show it without the others
  int worker = 0;
};

// Runs the batch again, in this process alone, and each of its samples by itself. Throws DataError
// where `file` is no such case.
Replay replay(const std::string& file, int threads);

}  // namespace convoy
