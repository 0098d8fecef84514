// Warnings and notes go to standard error through spdlog; standard output is for answers.
#pragma once

namespace convoy {

// Call once, at the start of main: spdlog::warn(...) and its kin then write "warning: ..." to
// standard error.
void start_log();

}  // namespace convoy
