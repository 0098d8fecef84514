#pragma once

#include <CLI/CLI.hpp>

namespace convoy {

// Adds `ps` to the bench command.
void add_bench_ps(CLI::App& bench);

}  // namespace convoy
