// A simulated cluster as a file describes it, in lines of `key = value`:
//   workers = 4
//   images_per_s = [600, 600, 600, 30]   # of each worker, or one number for all
//   gbit_per_s = 1                       # of a host's port
//   latency_us = 50                      # one way, between hosts
//   workers_per_host = 1
//   message_s_per_gb = 0                 # what messages take of a worker's core, by gradients
//   summed
//   load_ms = 0                          # to load a batch; or a list
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "world/sim/sim.h"

namespace convoy {

struct TrainingCluster {
  Cluster cluster;
  std::vector<double> images_per_s;  // by worker
  double message_s_per_byte = 0;
  std::vector<double> load_s;  // of a batch, by worker
};

// Throws ConfigError that names file, line and key.
TrainingCluster parse_cluster(std::string_view text, const std::string& file);
TrainingCluster read_cluster(const std::string& file);

}  // namespace convoy
