// The ranks of a world by host, and what those of one host share: a slot each, to compare what they
// are about to do, and room to stage buffers that do not lie in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sync/operation.h"
#include "world/host_memory.h"

namespace convoy {

class HostTeam {
 public:
  // All ranks of the operation's group, which must be the whole world, make one at the same time.
  explicit HostTeam(const Operation& operation);

  bool shares() const { return memory_ != nullptr; }  // at least two ranks on some host
  int local_size() const { return local_size_; }
  int local_index() const { return local_index_; }
  bool one_host() const { return leaders_.size() == 1; }
  // Every host has the same number of ranks.
  bool even() const { return even_; }
  const Group& leaders() const { return leaders_; }  // the first rank of every host
  // The ranks that have the own place on their host, one per host. Only where even().
  const Group& counterparts() const { return counterparts_; }

  std::span<std::byte> staging() const { return staging_; }
  // Compares with the others of the host where their buffers lie. Throws TransportError when they
  // differ. A barrier must come before the next comparison.
  void compare(std::span<std::byte> buffer, double timeout_s);
  bool in_shared_memory(std::span<std::byte> buffer) const;
  std::byte* of(int local, std::byte* own) const {
    return local_size_ == 1 ? own : memory_->in_region_of(local, own);
  }
  void barrier(double timeout_s) {
    if (local_size_ > 1) memory_->barrier(timeout_s);
  }
  // The time for so many bytes read and written passes, where time is virtual.
  void moved(std::size_t bytes) {
    if (memory_) memory_->moved(bytes);
  }

 private:
  void sort_ranks(const Group& world, std::span<const std::int64_t> leader_of);

  HostMemory* memory_ = nullptr;
  int local_size_ = 1;
  int local_index_ = 0;
  bool even_ = true;
  Group leaders_;
  Group counterparts_;
  std::span<std::byte> slot_;
  std::span<std::byte> staging_;
};

}  // namespace convoy
