// How the hosts of a job reach the launcher.
#pragma once

#include <span>
#include <string>

#include "world/launch/hosts.h"

namespace convoy {

// The own address on the way to `host` (a name or an address); empty where the name is unknown or
// there is no way.
std::string route_towards(const std::string& host);

// The address that every host can reach: the own one on the way to the first host that is not this
// machine, or loopback where there is none. Throws ConfigError where a host that is reached by ssh
// has no known address.
std::string launcher_address(std::span<const HostEntry> hosts);

}  // namespace convoy
