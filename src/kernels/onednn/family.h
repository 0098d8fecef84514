// The f32 family: oneDNN in its blocked layout.
#pragma once

#include <memory>

#include "kernels/family.h"

namespace convoy {

std::unique_ptr<Family> make_onednn_family();

}  // namespace convoy
