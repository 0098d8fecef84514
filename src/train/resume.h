// Finding a checkpoint to go on from, and the configuration that it goes on with.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/config.h"

namespace convoy {

// The checkpoint that `text` means: a file of weights with its state beside it, or the newest of a
// run's folder. Throws DataError.
std::filesystem::path find_checkpoint(const std::string& text);

// What the run that left the checkpoint was configured with. Throws ConfigError, and DataError also
// where that run is still under way.
TrainConfig stored_config(const std::filesystem::path& checkpoint);

// The run's folder that a checkpoint lies in: FOLDER/checkpoints/NAME. Empty where it lies
// elsewhere.
std::filesystem::path folder_of(const std::filesystem::path& checkpoint);

// The stored configuration with those `given` fields that may change. A field that may not, and
// differs, is a ConfigError.
TrainConfig resumed_config(const TrainConfig& stored, const TrainConfig& asked,
                           const std::vector<const ConfigField*>& given);

}  // namespace convoy
