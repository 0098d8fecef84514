// Tables of numbers as a document has them: a list for each column, short numbers.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace convoy {

// With five significant digits, which is more than a chart shows; null for what is no number.
nlohmann::json short_number(double value);
nlohmann::json short_number(const std::optional<double>& value);

// Columns with a name each, of equal lengths.
class Columns {
 public:
  explicit Columns(std::vector<std::string> names) : names_(std::move(names)) {
    for (const std::string& name : names_) json_[name] = nlohmann::json::array();
  }
  // One value for each column.
  void add(std::vector<nlohmann::json> row) {
    for (std::size_t i = 0; i < names_.size(); ++i) json_[names_[i]].push_back(std::move(row[i]));
  }
  const nlohmann::json& json() const { return json_; }

 private:
  std::vector<std::string> names_;
  nlohmann::json json_ = nlohmann::json::object();
};

// `rows` rows share `most` places evenly: the place of row `i`.
inline std::size_t place_of(std::size_t i, std::size_t rows, std::size_t most) {
  return rows <= most ? i : i * most / rows;
}

}  // namespace convoy
