// The numbers a network computes with.
#pragma once

#include <string>

namespace convoy {

enum class Precision { f32, bf16 };

std::string precision_name(Precision precision);

// "f32", "bf16" or "auto": bf16 where the CPU multiplies it and so is faster, else f32. Throws
// ConfigError otherwise.
Precision parse_precision(const std::string& text);

}  // namespace convoy
