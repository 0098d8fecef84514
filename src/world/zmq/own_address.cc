#include "world/zmq/own_address.h"

#include <arpa/inet.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace convoy {

// Connecting a datagram socket sends nothing, but makes the system choose the way.
std::string address_towards(const std::string& endpoint) {
  const std::size_t begin = endpoint.find("://"), end = endpoint.rfind(':');
  if (begin == std::string::npos || end <= begin + 3)
    throw TransportError(fmt::format("{} is no tcp://host:port", endpoint));
  const std::string host = endpoint.substr(begin + 3, end - begin - 3);
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), endpoint.c_str() + end + 1, &hints, &found))
    throw TransportError(fmt::format("{}: {}", host, gai_strerror(error)));
  sockaddr_in own{};
  socklen_t length = sizeof own;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool known = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  if (!known) throw TransportError(fmt::format("no way to {}: {}", endpoint, strerror(error)));
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &own.sin_addr, text.data(), text.size());
  return text.data();
}

namespace {

// The note that the linker leaves in the program: the first object of the list.
int read_build_id(dl_phdr_info* info, std::size_t, void* result) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const char* note = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
    const char* const end = note + part.p_memsz;
    while (note + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) head;
      std::memcpy(&head, note, sizeof head);
      const char* name = note + sizeof head;
      const char* value = name + (head.n_namesz + 3) / 4 * 4;
      if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
        for (unsigned k = 0; k < head.n_descsz; ++k)
          static_cast<std::string*>(result)->append(
              fmt::format("{:02x}", static_cast<unsigned char>(value[k])));
      note = value + (head.n_descsz + 3) / 4 * 4;
    }
  }
  return 1;
}

}  // namespace

std::string build_id() {
  std::string id;
  dl_iterate_phdr(&read_build_id, &id);
  return id.empty() ? "unknown" : id;
}

}  // namespace convoy
