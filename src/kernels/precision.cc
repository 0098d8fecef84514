#include "kernels/precision.h"

#include "base/error.h"
#include "kernels/cpu.h"

namespace convoy {

std::string precision_name(Precision precision) {
  return precision == Precision::f32 ? "f32" : "bf16";
}

Precision parse_precision(const std::string& text) {
  if (text == "auto") return cpu().multiplies_bf16() ? Precision::bf16 : Precision::f32;
  if (text == "f32") return Precision::f32;
  if (text == "bf16") return Precision::bf16;
  throw ConfigError("--precision: '{}' is not known; use auto, f32 or bf16", text);
}

}  // namespace convoy
