// Cutting things that are counted into parts.
#pragma once

#include <cstddef>

namespace convoy {

// Elements [begin, begin + count).
struct Range {
  std::size_t begin = 0;
  std::size_t count = 0;

  std::size_t end() const { return begin + count; }
};

// Part `index` when `count` elements are cut into `parts` that differ by at most one.
constexpr Range part_of(std::size_t count, int parts, int index) {
  const std::size_t n = static_cast<std::size_t>(parts), i = static_cast<std::size_t>(index);
  const std::size_t base = count / n, extra = count % n;
  return {i * base + (i < extra ? i : extra), base + (i < extra ? 1 : 0)};
}

}  // namespace convoy
