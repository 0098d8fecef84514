// What a rank gets when it starts: time, tasks and messages.
#pragma once

#include <functional>

#include "world/runtime.h"
#include "world/transport.h"

namespace convoy {

struct World {
  Runtime& runtime;
  Transport& transport;
};

// What one rank does. Throws to fail.
using RankBody = std::function<void(World)>;

}  // namespace convoy
