// The shape of one sample: channels x height x width. A vector of n features is n x 1 x 1.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace convoy {

struct Shape {
  int channels = 0;
  int height = 1;
  int width = 1;

  std::size_t count() const { return std::size_t(channels) * height * width; }
  std::size_t area() const { return std::size_t(height) * width; }
  std::string to_string() const;  // "3x32x32"
  bool operator==(const Shape&) const = default;
};

// Reads "CxHxW". Throws ConfigError that names `field`.
Shape parse_shape(std::string_view text, std::string_view field);

}  // namespace convoy
