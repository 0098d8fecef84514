#include "report/live_access.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <random>

namespace convoy {

std::string random_token() {
  std::random_device device;
  std::string text;
  for (int i = 0; i < 4; ++i) text += fmt::format("{:08x}", device());
  return text;
}

bool is_token(std::string_view text) {
  return text.size() >= 8 && std::all_of(text.begin(), text.end(), [](unsigned char letter) {
           return std::isalnum(letter) || letter == '-' || letter == '_';
         });
}

bool equal_secrets(std::string_view one, std::string_view other) {
  unsigned different = one.size() == other.size() ? 0 : 1;
  for (std::size_t i = 0; i < one.size(); ++i)
    different |= static_cast<unsigned char>(one[i]) ^
                 static_cast<unsigned char>(i < other.size() ? other[i] : 0);
  return different == 0;
}

bool is_loopback(std::string_view host) {
  in_addr address = {};
  if (::inet_pton(AF_INET, std::string(host).c_str(), &address) == 1)
    return ntohl(address.s_addr) >> 24 == 127;
  return host == "localhost" || host == "::1";
}

std::string cookie(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const std::size_t end = std::min(header.find(';'), header.size());
    std::string_view pair = header.substr(0, end);
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('='))
      return std::string(pair.substr(name.size() + 1));
    header.remove_prefix(std::min(end + 1, header.size()));
  }
  return {};
}

bool is_loopback_header(std::string_view host_header) {
  if (host_header.starts_with("[::1]")) return true;
  return is_loopback(host_header.substr(0, host_header.find(':')));
}

}  // namespace convoy
