// The errors that a user can meet. main() turns each into one line and an exit code. Our own bugs
// go to CHECK.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace convoy {

// Wrong usage or configuration: exit code 2.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  template <typename... Args>
  explicit ConfigError(fmt::format_string<Args...> text, Args&&... args)
      : std::runtime_error(fmt::format(text, std::forward<Args>(args)...)) {}
};

// A file or data set that is missing, damaged, foreign or cannot be written: exit code 1.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  template <typename... Args>
  explicit DataError(fmt::format_string<Args...> text, Args&&... args)
      : std::runtime_error(fmt::format(text, std::forward<Args>(args)...)) {}
};

// A peer that is lost or late: exit code 1.
class TransportError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace convoy
