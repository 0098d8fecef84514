// A training as a process of its own: what it says passes through, and its answer is kept.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "world/launch/process.h"

namespace convoy {

struct TrainingEnd {
  int code = 0;              // its exit code; 128 + signal where one ended it
  bool interrupted = false;  // by a signal to this process
  std::string reason;        // its line about why it failed
  nlohmann::json answer;     // of --json; null where it failed
  double seconds = 0;        // from its start to its end
};

// Runs the command (convoy train ... --json) and waits for it. Its messages go to `human`, with
// `name` before each line. The first of `signals` asks it to stop and gives it some seconds, the
// second ends it at once. It does not outlive this process.
TrainingEnd run_training(const std::vector<std::string>& command, const std::string& name,
                         SignalQueue& signals, std::FILE* human);

}  // namespace convoy
