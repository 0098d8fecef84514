// The bf16 family: our own kernels, for the tiles of AMX and once more for AVX2, where the same
// numbers are multiplied and summed in the same order.
#pragma once

#include <memory>

#include "kernels/family.h"

namespace convoy {

namespace amx {
bool is_usable();  // where the CPU's tiles work
std::unique_ptr<Family> make_family();
}  // namespace amx

namespace amx_avx2 {
bool is_usable();  // everywhere
std::unique_ptr<Family> make_family();
}  // namespace amx_avx2

}  // namespace convoy
