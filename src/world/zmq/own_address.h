// What a process can find out about itself for others.
#pragma once

#include <string>

namespace convoy {

// The address by which this machine reaches `endpoint` (tcp://host:port), as its peers see it.
// Throws TransportError where there is no way.
std::string address_towards(const std::string& endpoint);

// Names the build of the running program: the same for copies of one file.
std::string build_id();

}  // namespace convoy
