// The page, which web/ is built into, and reports made of it.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "measure/store.h"

namespace convoy {

// One HTML file with script, styles and font inside. Without a document it is the live page.
std::string_view page();

// The page with a document inside, in which no text can end the element that holds it.
std::string html_of(const nlohmann::json& document);

inline constexpr std::size_t kMaxReportBytes = 5'000'000;

// A report of the runs, shorter than kMaxReportBytes: with less detail where there are many. Throws
// ConfigError where there are too many for any.
std::string report_html(Store& store, std::span<const RunRow> runs);

}  // namespace convoy
