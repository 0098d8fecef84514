// The bf16 family: our own kernels for AMX tiles.
#pragma once

#include <memory>

#include "kernels/family.h"

namespace convoy {

// Only where cpu().amx_works.
std::unique_ptr<Family> make_amx_family();

}  // namespace convoy
