#include "base/shape.h"

#include <charconv>

#include "base/error.h"

namespace convoy {

std::string Shape::to_string() const { return fmt::format("{}x{}x{}", channels, height, width); }

Shape parse_shape(std::string_view text, std::string_view field) {
  int parts[3] = {};
  std::size_t at = 0;
  for (int i = 0; i < 3; ++i) {
    const char* begin = text.data() + at;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), parts[i]);
    at = std::size_t(end - text.data());
    const bool separated = i == 2 ? at == text.size() : at < text.size() && text[at++] == 'x';
    if (error != std::errc() || !separated || parts[i] < 1 || parts[i] > 65536)
      throw ConfigError("{}: '{}' is not a shape; write CHANNELSxHEIGHTxWIDTH, as in 3x224x224",
                        field, text);
  }
  return {parts[0], parts[1], parts[2]};
}

}  // namespace convoy
