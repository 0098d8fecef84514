// CHECK(condition, "text {}", value) is for our own bugs: it ends the process with the place and
// the text.
#pragma once

#include <fmt/format.h>

#include <string>

namespace convoy {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& text);

}  // namespace convoy

#define CHECK(condition, ...)                                                             \
  do {                                                                                    \
    if (!(condition)) [[unlikely]]                                                        \
      ::convoy::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
