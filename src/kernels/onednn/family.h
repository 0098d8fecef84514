// The family for any CPU: oneDNN in its blocked layout, values in f32.
#pragma once

#include <memory>

#include "kernels/family.h"
#include "kernels/precision.h"

namespace convoy {

struct OnednnOptions {
  // With bf16 products the factors of convolutions and dense layers are rounded to bf16 and summed
  // in f32. That needs AVX-512 and is no faster than f32: it is there so that bf16 training can be
  // repeated on a CPU without AMX.
  Precision products = Precision::f32;
  // Algorithms follow from the layers' sizes alone. Otherwise they are timed, and since they round
  // differently, two machines or two runs may differ in the last bits.
  bool fixed_algorithms = false;
};

// Results depend on the number of threads in their last bits.
std::unique_ptr<Family> make_onednn_family(const OnednnOptions& options);

}  // namespace convoy
