// The family for any CPU: oneDNN in its blocked layout, values in f32.
#pragma once

#include <memory>

#include "kernels/family.h"

namespace convoy {

struct OnednnOptions {
  // Algorithms follow from the layers' sizes alone. Otherwise they are timed, and since they round
  // differently, two machines or two runs may differ in the last bits.
  bool fixed_algorithms = false;
};

// Results depend on the number of threads in their last bits.
std::unique_ptr<Family> make_onednn_family(const OnednnOptions& options);

}  // namespace convoy
