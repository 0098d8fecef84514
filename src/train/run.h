// One training run from configuration to result: opens the data, makes or restores the network,
// trains, saves, records.
#pragma once

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/config.h"

namespace convoy {

struct TrainRequest {
  TrainConfig config;
  std::vector<const ConfigField*> given;  // what flags and file said, as opposed to defaults
  std::string resume;                     // a run's folder or a checkpoint; empty: start afresh
};

struct TrainResult {
  bool finished = false;  // false: interrupted, and saved
  std::filesystem::path folder;
  nlohmann::json answer;  // with the names that scripts rely on
};

// Tells people about it on `human` (first line, summary) and on standard error (progress).
// Throws ConfigError, DataError or Diverged; files are then whole or absent.
TrainResult train(const TrainRequest& request, std::FILE* human);

}  // namespace convoy
