#pragma once

#include <cstdint>
#include <string>

namespace convoy {

// 4194304 as 4,194,304.
inline std::string grouped_digits(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

}  // namespace convoy
