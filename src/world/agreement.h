// Ranks that run different code, or the same with different settings, compute nonsense together: so
// they compare what they are before they begin.
#pragma once

#include <string>

#include "world/transport.h"

namespace convoy {

// The identity of the running program's code: the linker's build id; "unknown" where there is none.
std::string program_build();

// What a rank is.
struct Identity {
  std::string build;
  std::string arguments;  // of the command line, without the program's name
  std::string host;
};
Identity identity_of_process(const std::string& host);

// Compares every rank with rank 0. Throws ConfigError on all ranks, with the first difference in
// it, after the transport was closed.
void agree(Transport& transport, const Identity& own, double timeout_s);

}  // namespace convoy
