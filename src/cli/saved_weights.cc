#include "cli/saved_weights.h"

#include "base/error.h"
#include "nn/checkpoint.h"
#include "train/resume.h"

namespace convoy {

std::filesystem::path weights_at(const std::string& text) {
  const std::filesystem::path path(text);
  if (!std::filesystem::is_directory(path)) return path;
  const std::filesystem::path final_weights = path / "final.safetensors";
  return std::filesystem::exists(final_weights) ? final_weights : find_checkpoint(text);
}

void complete_from(TrainConfig& config, const std::filesystem::path& path) {
  if (path.string().ends_with(".state.safetensors"))
    throw DataError("{}: is the state of training, not weights: give the file without '.state'",
                    path.string());
  const CheckpointInfo info = read_checkpoint_info(path);
  if (config.model.empty()) config.model = info.model;
  if (config.model.empty())
    throw ConfigError("{} does not say which network it is of: add --model NAME", path.string());
  if (config.model != info.model) return;
  if (config.classes == 0) config.classes = info.classes;
  if (config.input.empty() && info.input.channels > 0) config.input = info.input.to_string();
}

}  // namespace convoy
