// The bf16 family: our own kernels, for the tiles of AMX and twice more for CPUs without them.
#pragma once

#include <memory>

#include "kernels/family.h"

namespace convoy {

namespace amx {
bool is_usable();  // where the CPU's tiles work
std::unique_ptr<Family> make_family();
}  // namespace amx

namespace amx_avx512 {
bool is_usable();  // where the CPU multiplies pairs of bf16
std::unique_ptr<Family> make_family();
}  // namespace amx_avx512

namespace amx_avx2 {
bool is_usable();  // everywhere
std::unique_ptr<Family> make_family();
}  // namespace amx_avx2

}  // namespace convoy
