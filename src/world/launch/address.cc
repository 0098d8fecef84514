#include "world/launch/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <memory>

#include "base/error.h"
#include "world/launch/process.h"

namespace convoy {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

}  // namespace

std::string route_towards(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), "9", &wanted, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  // Connecting a datagram socket sends nothing; the system only picks the way.
  const Fd probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (::connect(probe.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return {};
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &own.sin_addr, text, sizeof text);
  return text;
}

std::string launcher_address(std::span<const HostEntry> hosts) {
  for (const HostEntry& host : hosts) {
    const std::string own = route_towards(host.address.empty() ? host.name : host.address);
    if (own.empty() && (host.agent.empty() || !host.address.empty()))
      throw ConfigError(
          "host {}: no way to {} is known: give address= in the hosts file, or "
          "--address with the address of this machine that the hosts reach",
          host.name, host.address.empty() ? "it" : host.address);
    if (!own.empty() && !own.starts_with("127.")) return own;
  }
  return kLoopback;
}

}  // namespace convoy
