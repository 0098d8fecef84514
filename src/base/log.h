// Warnings and notes go to standard error through spdlog; standard output is for answers.
#pragma once

#include <cstdio>
#include <string_view>

namespace convoy {

// Call once, at the start of main: spdlog::warn(...) and its kin then write "warning: ..." to
// standard error.
void start_log();

// Writes text for people. Never fails: a closed or full stream must not end a run; the stream keeps
// the failure (std::ferror).
void tell(std::FILE* stream, std::string_view text);

}  // namespace convoy
