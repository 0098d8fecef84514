#include "sync/element.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace convoy {

Element parse_element(std::string_view name) {
  for (std::size_t i = 0; i < kElementNames.size(); ++i)
    if (kElementNames[i] == name) return static_cast<Element>(i);
  throw ConfigError("unknown element '{}': one of {}", name, fmt::join(kElementNames, ", "));
}

}  // namespace convoy
