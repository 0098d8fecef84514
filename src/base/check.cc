#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace convoy {

void check_failed(const char* file, int line, const char* condition, const std::string& text) {
  fmt::print(stderr, "convoy: internal error at {}:{}: {} ({})\n", file, line, text, condition);
  std::abort();
}

}  // namespace convoy
