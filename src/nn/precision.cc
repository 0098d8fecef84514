#include "nn/precision.h"

#include "base/error.h"

namespace convoy {

std::string precision_name(Precision precision) { return precision == Precision::f32 ? "f32" : "bf16"; }

Precision parse_precision(const std::string& text) {
  if (text == "f32" || text == "auto") return Precision::f32;
  if (text == "bf16") return Precision::bf16;
  throw ConfigError("--precision: '{}' is not known; use auto, f32 or bf16", text);
}

}  // namespace convoy
