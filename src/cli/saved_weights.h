// Saved weights as a command names them.
#pragma once

#include <filesystem>
#include <string>

#include "train/config.h"

namespace convoy {

// A file of weights, or those of a run's folder: the final ones, else of its latest checkpoint.
std::filesystem::path weights_at(const std::string& text);

// The network, as the file says of itself, unless flags say otherwise.
void complete_from(TrainConfig& config, const std::filesystem::path& path);

}  // namespace convoy
