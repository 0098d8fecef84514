// Checkpoints in a folder: their names, the latest, and how many are kept.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/error.h"
#include "nn/checkpoint.h"
#include "nn/checkpoint_metadata.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

struct Listed {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  bool is_state = false;
  fs::path path;
  auto progress() const { return std::tie(epoch, step); }
};

// Takes `text` away from the front of `rest`.
bool take(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

bool take(std::string_view& rest, std::int64_t& number) {
  if (rest.empty() || rest[0] == '-') return false;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc()) return false;
  rest.remove_prefix(std::size_t(end - rest.data()));
  return true;
}

// epoch-0003-step-000117.safetensors or .state.safetensors; nothing else.
std::optional<Listed> parse_name(const fs::path& path) {
  const std::string name = path.filename().string();
  std::string_view rest = name;
  Listed listed{.path = path};
  if (!take(rest, "epoch-") || !take(rest, listed.epoch) || !take(rest, "-step-") ||
      !take(rest, listed.step))
    return {};
  listed.is_state = rest == ".state.safetensors";
  if (!listed.is_state && rest != ".safetensors") return {};
  return listed;
}

// Weights and states, newest first.
std::vector<Listed> list_folder(const fs::path& folder) {
  std::vector<Listed> files;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  if (error == std::errc::no_such_file_or_directory) return files;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    if (auto listed = parse_name(entry->path())) files.push_back(std::move(*listed));
  if (error) throw DataError("{}: cannot list the folder: {}", folder.string(), error.message());
  std::sort(files.begin(), files.end(),
            [](const Listed& a, const Listed& b) { return a.progress() > b.progress(); });
  return files;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw DataError("{}: cannot remove: {}", path.string(), error.message());
}

bool belong_together(const fs::path& weights) {
  const fs::path state = state_path(weights);
  try {
    return fs::exists(state) && metadata_text(SafetensorsFile(weights), kDigestKey) ==
                                    metadata_text(SafetensorsFile(state), kDigestKey);
  } catch (const DataError& error) {
    spdlog::warn("{}; passed over", error.what());
    return false;
  }
}

// x.state.safetensors -> x.safetensors
fs::path weights_path(const fs::path& state) {
  return fs::path(state).replace_extension().replace_extension(".safetensors");
}

}  // namespace

std::string checkpoint_name(int epoch, std::int64_t step) {
  return fmt::format("epoch-{:04}-step-{:06}", epoch, step);
}

std::optional<fs::path> latest_checkpoint(const fs::path& folder) {
  for (const Listed& listed : list_folder(folder))
    if (!listed.is_state && belong_together(listed.path)) return listed.path;
  return {};
}

void prune_checkpoints(const fs::path& folder, int keep) {
  if (keep <= 0) return;
  int kept = 0;
  for (const Listed& listed : list_folder(folder)) {
    if (listed.is_state) {
      const fs::path weights = weights_path(listed.path);
      if (kept > 0 && !fs::exists(weights)) remove_file(listed.path);
      continue;
    }
    if (kept++ < keep) continue;
    // The weights first: a crash in between leaves a state that nobody lists.
    remove_file(listed.path);
    remove_file(state_path(listed.path));
  }
}

}  // namespace convoy
