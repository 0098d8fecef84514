// Whether numbers are numbers.
#pragma once

#include <span>

namespace convoy {

// False where one is infinite or none. On all threads of the team.
bool all_finite(std::span<const float> values);

}  // namespace convoy
