// What `convoy runs` shows of runs, as JSON and as text for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "measure/store.h"

namespace convoy {

nlohmann::json run_json(const RunRow& run);  // without what is null

std::string run_table(const std::vector<RunRow>& runs);

// Everything of one run that fits on a screen: its row, settings that are not the default, epochs,
// seconds by rank and phase, whom ranks waited for.
nlohmann::json run_details(Store& store, const RunRow& run);
std::string details_text(const nlohmann::json& details);

// Two runs side by side: results, and settings that differ.
nlohmann::json run_differences(Store& store, const RunRow& a, const RunRow& b);
std::string differences_text(const nlohmann::json& differences);

// A table's rows of a run as CSV (RFC 4180), with a line of names.
std::string csv_text(const nlohmann::json& rows);

// "2026-01-31 23:59:59", in UTC.
std::string moment_text(double unix_s);

}  // namespace convoy
