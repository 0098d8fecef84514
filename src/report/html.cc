#include "report/html.h"

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "report/document.h"

// The built page as bytes of this program.
asm(R"(
  .section .rodata
  .global convoy_page_begin
  .global convoy_page_end
convoy_page_begin:
  .incbin ")" CONVOY_PAGE R"("
convoy_page_end:
  .byte 0
  .section .text
)");
extern "C" const char convoy_page_begin[];
extern "C" const char convoy_page_end[];

namespace convoy {
namespace {

constexpr std::string_view kOpen = R"(<script id="convoy-document" type="application/json">)";
constexpr std::string_view kNothing = "null";
constexpr double kRunsInFull = 16;  // at most about 250 kB each
constexpr double kLeastDetail = 1.0 / 256;

// JSON has '<' only within texts, where \u003c says the same.
std::string without_markup(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (const char letter : json)
    if (letter == '<')
      text += "\\u003c";
    else
      text += letter;
  return text;
}

}  // namespace

std::string_view page() {
  return {convoy_page_begin, std::size_t(convoy_page_end - convoy_page_begin)};
}

std::string html_of(const nlohmann::json& document) {
  const std::string_view whole = page();
  const std::size_t open = whole.find(kOpen);
  CHECK(open != std::string_view::npos, "the page has no place for a document");
  const std::size_t begin = open + kOpen.size();
  CHECK(whole.substr(begin, kNothing.size()) == kNothing, "the page has a document already");
  std::string html(whole.substr(0, begin));
  html += without_markup(document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  html += whole.substr(begin + kNothing.size());
  return html;
}

std::string report_html(Store& store, std::span<const RunRow> runs) {
  for (double detail = std::min(1.0, kRunsInFull / double(runs.size())); detail >= kLeastDetail;
       detail /= 2) {
    std::string html = html_of(report_document(store, runs, detail));
    if (html.size() < kMaxReportBytes) return html;
  }
  throw ConfigError("{} runs are too many for one report of at most {} MB: name fewer", runs.size(),
                    kMaxReportBytes / 1'000'000);
}

}  // namespace convoy
