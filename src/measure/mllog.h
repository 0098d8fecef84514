// MLPerf's log lines: ":::MLLOG {...}", one event each, as mlperf_logging reads them.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace convoy {

class MlLog {
 public:
  // Begins a new file. Throws DataError.
  explicit MlLog(const std::filesystem::path& file);

  void point(const std::string& key, const nlohmann::json& value,
             const nlohmann::json& metadata = nlohmann::json::object());
  void begin(const std::string& key, const nlohmann::json& metadata = nlohmann::json::object());
  void end(const std::string& key, const nlohmann::json& metadata = nlohmann::json::object());

 private:
  void write(const char* kind, const std::string& key, const nlohmann::json& value,
             const nlohmann::json& metadata);

  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace convoy
