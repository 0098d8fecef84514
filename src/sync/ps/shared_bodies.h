// Gradients that a server reads where the worker has them: in memory that the ranks of a host
// share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "world/host_memory.h"
#include "world/transport.h"

namespace convoy {

class SharedBodies {
 public:
  // In the task that owns the transport. All ranks of a host ask for as many bytes; 0: none.
  SharedBodies(Transport& transport, std::size_t bytes) {
    HostMemory* const host = transport.host_memory();
    if (bytes == 0 || !host || host->ranks().size() < 2 || !transport.carries_bytes()) return;
    host_ = host;
    own_ = host->allocate(bytes);
  }

  // Zeros, at first; empty where there is nobody to share with.
  std::span<std::byte> own() const { return own_; }

  // Where another rank finds a body, counted from 1; 0: it does not, and the body has to be sent.
  std::uint64_t place_for(int rank, std::span<const std::byte> body) const {
    const auto offset = std::uintptr_t(body.data()) - std::uintptr_t(own_.data());
    const bool inside = offset < own_.size() && body.size() <= own_.size() - offset;
    return inside && index_of(rank) >= 0 ? offset + 1 : 0;
  }
  // The body that a rank has told the place of; empty: there is none.
  std::span<const std::byte> body_of(int rank, std::uint64_t place, std::uint64_t bytes) const {
    const int index = index_of(rank);
    if (index < 0 || place == 0 || place > own_.size() || bytes > own_.size() - (place - 1))
      return {};
    return {host_->in_region_of(index, own_.data()) + (place - 1), std::size_t(bytes)};
  }

 private:
  int index_of(int rank) const {
    if (!host_) return -1;
    const std::span<const int> ranks = host_->ranks();
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    return found == ranks.end() ? -1 : int(found - ranks.begin());
  }

  HostMemory* host_ = nullptr;
  std::span<std::byte> own_;
};

}  // namespace convoy
