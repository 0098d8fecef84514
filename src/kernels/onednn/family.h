// The family for any CPU: oneDNN in its blocked layout, values in f32.
#pragma once

#include <memory>

#include "kernels/family.h"
#include "kernels/precision.h"

namespace convoy {

// With bf16 products the factors of convolutions and dense layers are rounded to bf16 and summed in
// f32. That needs AVX-512 and is no faster than f32: it is there so that bf16 training can be
// repeated on a CPU without AMX.
std::unique_ptr<Family> make_onednn_family(Precision products);

}  // namespace convoy
