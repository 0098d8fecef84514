#include "world/transport.h"

#include <algorithm>
#include <cstring>

namespace convoy {

PeerLost::PeerLost(int rank, const std::string& why)
    : TransportError(fmt::format("rank {} is lost: {}", rank, why)), rank_(rank) {}

void Position::set_place(std::string_view text) {
  place.fill(0);
  std::memcpy(place.data(), text.data(), std::min(text.size(), place.size() - 1));
}

std::string Position::text() const {
  return fmt::format("{} #{}, {} bytes", place.data(), sequence, bytes);
}

void Transport::throw_too_late(double timeout_s) const {
  throw DeadlineExceeded(fmt::format("rank {}: no answer within {} s", rank(), timeout_s));
}

}  // namespace convoy
