// One training run from configuration to result: opens the data, makes or restores the network,
// trains, saves, records. Every worker of the run calls it in its own world.
#pragma once

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "measure/store_writer.h"
#include "train/config.h"
#include "train/interrupt.h"
#include "train/parts.h"
#include "world/world.h"

namespace convoy {

struct TrainRequest {
  TrainConfig config;
  std::vector<const ConfigField*> given;  // what flags and file said, as opposed to defaults
  std::string resume;                     // a run's folder or a checkpoint; empty: start afresh

  StoreWriter* writer = nullptr;  // of this process; null: nothing is recorded
  std::string transport = {};     // what carries messages, for the record

  // Where several workers are one process:
  SharedData* shared_data = nullptr;  // the data of all; null: the worker opens its own
  int threads = 0;                    // of each, unless the configuration says; 0: all cores
  double images_per_s = 0;            // of a worker of a simulated cluster; 0: as fast as it is
  double message_s_per_byte = 0;      // what messages take of its core
  double load_s = 0;                  // what it takes to load a batch
};

struct TrainResult {
  bool finished = false;  // false: interrupted, and saved
  bool leads = true;      // this worker writes and tells; the others have no answer
  std::filesystem::path folder;
  nlohmann::json answer;  // with the names that scripts rely on
};

// Tells people about it on `human` (first line, summary) and on standard error (progress), if this
// is the leading worker. Throws ConfigError, DataError, TransportError or Diverged; files are then
// whole or absent. Closes the world's transport unless it throws.
TrainResult train(const TrainRequest& request, World world, const InterruptGuard& interrupt,
                  std::FILE* human);

}  // namespace convoy
