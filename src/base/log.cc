#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace convoy {

void start_log() {
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  sink->set_pattern("%^%l%$: %v");
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("convoy", std::move(sink)));
}

void tell(std::FILE* stream, std::string_view text) {
  [[maybe_unused]] const std::size_t written = std::fwrite(text.data(), 1, text.size(), stream);
}

}  // namespace convoy
