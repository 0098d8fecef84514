// From a configuration to the data and the network that it names.
#pragma once

#include <memory>
#include <mutex>

#include "data/open.h"
#include "nn/model.h"
#include "train/config.h"

namespace convoy {

// Throws where the data are missing, or do not fit --input and --classes.
DataSplit open_split(const TrainConfig& config, const DataPart& part = {},
                     const OpenBytes& open_bytes = open_file_bytes);

// For images of `data`; its classes unless the configuration says more. Weights are those of the
// seed.
// `batch` is what it is prepared for; 0: the configuration's.
std::unique_ptr<Model> make_model(const TrainConfig& config, const Dataset& data, int batch = 0,
                                  StatisticsExchange* exchange = nullptr);

// One data set for all workers of a process. From any task.
class SharedData {
 public:
  std::shared_ptr<const DataSplit> open(const TrainConfig& config);

 private:
  std::mutex mutex_;
  std::shared_ptr<const DataSplit> split_;
};

}  // namespace convoy
