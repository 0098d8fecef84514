#include "report/columns.h"

#include <fmt/format.h>

#include <cstdlib>

namespace convoy {

nlohmann::json short_number(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < 1e9) return std::int64_t(value);
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

nlohmann::json short_number(const std::optional<double>& value) {
  return value ? short_number(*value) : nlohmann::json(nullptr);
}

}  // namespace convoy
