// Flags from the table of configuration fields.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "train/config.h"

namespace convoy {

// Flags as they were given, to be set after the file has been read.
using GivenFlags = std::vector<std::pair<const ConfigField*, std::string>>;

// Adds the field's flag; parsing appends to `given`, which outlives the command.
void add_field_flag(CLI::App& command, const ConfigField& field, GivenFlags& given);

}  // namespace convoy
