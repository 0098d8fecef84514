#include "train/records.h"

#include <spdlog/version.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "kernels/cpu.h"
#include "measure/store.h"

#ifndef CONVOY_COMMIT
#define CONVOY_COMMIT "unknown"
#endif

namespace convoy {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

namespace {

std::string time_text(const char* format) {
  const std::time_t now = std::time_t(unix_time_s());
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

// "synthetic:1x28x28:10:512" and "/a/photos" as parts of a file's name.
std::string as_name(const std::string& text) {
  std::string name = std::filesystem::path(text).filename().string();
  name = name.substr(0, name.find(':'));
  return name.empty() ? "data" : name;
}

}  // namespace

std::string store_path(const TrainConfig& config) {
  return config.store.empty() ? kDefaultStore : config.store;
}

nlohmann::json environment_json(int threads) {
  return {{"commit", CONVOY_COMMIT},
          {"host", host_name()},
          {"cpu", cpu().model},
          {"isa", cpu().isa()},
          {"cores", cpu().cores},
          {"threads", threads},
          {"compiler", "gcc " __VERSION__},
          {"libraries",
           {{"onednn", onednn_version()},
            {"fmt", FMT_VERSION},
            {"spdlog",
             fmt::format("{}.{}.{}", SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)}}}};
}

nlohmann::json phases_json(const TimeLedger& time) {
  nlohmann::json phases = nlohmann::json::object();
  for (std::size_t i = 0; i < kPhaseNames.size(); ++i)
    phases[std::string(kPhaseNames[i])] = time.seconds(Phase(i));
  return phases;
}

void write_run_record(const std::filesystem::path& folder, const TrainConfig& config, int threads,
                      const std::string& state, const nlohmann::json& result) {
  const nlohmann::json record = {
      {"run", folder.filename().string()},          {"state", state},
      {"written", time_text("%Y-%m-%dT%H:%M:%SZ")}, {"configuration", to_json(config)},
      {"environment", environment_json(threads)},   {"result", result}};
  write_file_atomically(
      folder / "run.json",
      record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::string summary_table(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::size_t width = 0;
  for (const auto& [name, value] : rows) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : rows) text += fmt::format("  {:<{}}  {}\n", name, width, value);
  return text;
}

std::filesystem::path claim_run_folder(const TrainConfig& config) {
  const std::string id =
      fmt::format("{}-{}-{}", config.model, as_name(config.data), time_text("%Y%m%d-%H%M%S"));
  make_folder("runs");
  for (int attempt = 1;; ++attempt) {
    const std::filesystem::path folder =
        std::filesystem::path("runs") / (attempt == 1 ? id : fmt::format("{}-{}", id, attempt));
    std::error_code error;
    if (std::filesystem::create_directory(folder, error)) return folder;
    if (error)
      throw DataError("{}: cannot create the folder: {}", folder.string(), error.message());
  }
}

}  // namespace convoy
