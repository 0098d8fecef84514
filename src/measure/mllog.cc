#include "measure/mllog.h"

#include <cstdint>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

namespace convoy {

MlLog::MlLog(const std::filesystem::path& file) : path_(file) {
  if (file.has_parent_path()) make_folder(file.parent_path());
  file_.open(path_, std::ios::trunc);
  if (!file_) throw DataError("{}: cannot write the MLPerf log", path_.string());
}

void MlLog::point(const std::string& key, const nlohmann::json& value,
                  const nlohmann::json& metadata) {
  write("POINT_IN_TIME", key, value, metadata);
}

void MlLog::begin(const std::string& key, const nlohmann::json& metadata) {
  write("INTERVAL_START", key, nullptr, metadata);
}

void MlLog::end(const std::string& key, const nlohmann::json& metadata) {
  write("INTERVAL_END", key, nullptr, metadata);
}

void MlLog::write(const char* kind, const std::string& key, const nlohmann::json& value,
                  const nlohmann::json& metadata) {
  nlohmann::ordered_json line;
  line["namespace"] = "";
  line["time_ms"] = std::int64_t(1e3 * unix_time_s());
  line["event_type"] = kind;
  line["key"] = key;
  line["value"] = value;
  line["metadata"] = metadata;
  line["metadata"]["file"] = "convoy";
  line["metadata"]["lineno"] = 0;
  file_ << ":::MLLOG "
        << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
  if (!file_) throw DataError("{}: cannot write the MLPerf log", path_.string());
}

}  // namespace convoy
