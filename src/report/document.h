// The document that the page draws: runs of a store as JSON. docs/report.md describes it field by
// field; web/src/document.ts is the same for the page.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "measure/store.h"

namespace convoy {

inline constexpr int kDocumentFormat = 1;

// What a list of runs needs.
std::vector<nlohmann::json> run_summaries(Store& store, const RunFilter& filter = {});

nlohmann::json run_summary(Store& store, const RunRow& run);

// `detail` scales how many steps, samples and spans are kept; 1: as many as a screen can show.
nlohmann::json run_document(Store& store, const RunRow& run, double detail = 1);

// With the names of the program and the moment it was made.
nlohmann::json report_document(Store& store, std::span<const RunRow> runs, double detail = 1);

}  // namespace convoy
