#include "train/resume.h"

#include "base/error.h"
#include "base/file.h"
#include "nn/checkpoint.h"

namespace convoy {

namespace fs = std::filesystem;

fs::path find_checkpoint(const std::string& text) {
  const fs::path path(text);
  if (!fs::exists(path)) throw DataError("{}: no such run or checkpoint", text);
  if (!fs::is_directory(path)) return path;
  for (const fs::path& folder : {path / "checkpoints", path})
    if (fs::is_directory(folder))
      if (const auto latest = latest_checkpoint(folder)) return *latest;
  throw DataError("{}: no whole checkpoint in this folder", text);
}

TrainConfig stored_config(const fs::path& checkpoint) {
  // A run that is still writing there may remove the checkpoint while it is read.
  if (const fs::path folder = folder_of(checkpoint); !folder.empty()) FolderLock{folder};
  TrainConfig stored;
  read_toml(stored, read_checkpoint_state(checkpoint).configuration, checkpoint.string());
  return stored;
}

fs::path folder_of(const fs::path& checkpoint) {
  const fs::path parent = fs::absolute(checkpoint).lexically_normal().parent_path();
  if (parent.filename() != "checkpoints") return {};
  const fs::path shown =
      checkpoint.parent_path().parent_path();  // as the user wrote it, where that says enough
  return shown.empty() ? parent.parent_path() : shown;
}

TrainConfig resumed_config(const TrainConfig& stored, const TrainConfig& asked,
                           const std::vector<const ConfigField*>& given) {
  TrainConfig config = stored;
  for (const ConfigField* field : given) {
    if (!field->may_change && print_field(stored, *field) != print_field(asked, *field))
      throw ConfigError("{} {} contradicts the checkpoint's {}: leave it away, or start a new run",
                        field->flag(), print_field(asked, *field), print_field(stored, *field));
    std::visit([&](auto member) { config.*member = asked.*member; }, field->member);
  }
  return config;
}

}  // namespace convoy
