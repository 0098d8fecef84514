// A run from its first step to its record, whatever the workers do in between.
#pragma once

#include <cstdio>
#include <functional>

#include "train/run_rows.h"
#include "train/setup.h"

namespace convoy {

struct RunCourse {
  std::function<bool()> run;      // false: interrupted, and saved
  std::function<RunView()> view;  // afterwards; of the leading worker
  std::function<void()> leave;    // before the transport is closed
  RunEntry* entry = nullptr;      // in the store; null: there is none
  bool together = true;           // all workers end at the same time, and can talk to one another
  // Otherwise: what the leading worker knows of the others' time, after run().
  std::function<std::vector<RankTotals>()> totals = {};
};

// Trains, leaves weights and a record that says how it went, and closes the workers' transport.
TrainResult carry_out(RunParts& parts, const RunCourse& course, std::FILE* human);

}  // namespace convoy
