// What collectives compute with: elements of a buffer, and how those of several ranks become one.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace convoy {

enum class Element { f32, bf16, i64 };
enum class Reduction { sum, mean, max };  // i64 has no mean

inline constexpr std::array<std::string_view, 3> kElementNames{"f32", "bf16", "i64"};
inline constexpr std::array<std::string_view, 3> kReductionNames{"sum", "mean", "max"};

constexpr std::size_t element_bytes(Element element) {
  return element == Element::f32 ? 4 : element == Element::bf16 ? 2 : 8;
}
constexpr std::string_view element_name(Element element) {
  return kElementNames[static_cast<std::size_t>(element)];
}
constexpr std::string_view reduction_name(Reduction reduction) {
  return kReductionNames[static_cast<std::size_t>(reduction)];
}

Element parse_element(std::string_view name);  // throws ConfigError

}  // namespace convoy
