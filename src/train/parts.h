// From a configuration to the data and the network that it names.
#pragma once

#include <memory>

#include "data/open.h"
#include "nn/model.h"
#include "train/config.h"

namespace convoy {

// Throws where the data are missing, or do not fit --input and --classes.
DataSplit open_split(const TrainConfig& config);

// For images of `data`; its classes unless the configuration says more. Weights are those of the
// seed.
std::unique_ptr<Model> make_model(const TrainConfig& config, const Dataset& data);

}  // namespace convoy
