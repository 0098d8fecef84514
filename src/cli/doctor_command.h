// convoy doctor: what this machine can do for training, and what it cannot.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy {

void add_doctor_command(CLI::App& app);

}  // namespace convoy
