#pragma once

#include <CLI/CLI.hpp>

namespace convoy {

// Adds `allreduce` to the bench command.
void add_bench_allreduce(CLI::App& bench);

}  // namespace convoy
