#include "sync/host_team.h"

#include <algorithm>
#include <cstring>

#include "sync/algorithms.h"

namespace convoy {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{16} << 20;
constexpr std::size_t kSlotBytes = 64;
constexpr std::uint64_t kPrivate = ~std::uint64_t{0};

}  // namespace

HostTeam::HostTeam(const Operation& operation) {
  const Group& world = *operation.group;
  HostMemory* const memory =
      operation.transport.carries_bytes() ? operation.transport.host_memory() : nullptr;
  std::vector<std::int64_t> leader_of(world.ranks.begin(), world.ranks.end());
  if (operation.transport.carries_bytes()) {
    if (memory) leader_of[std::size_t(world.index)] = memory->ranks().front();
    Operation gather = operation;
    gather.element = Element::i64;
    ring_all_gather(gather, std::as_writable_bytes(std::span(leader_of)));
  }
  sort_ranks(world, leader_of);
  const bool shares = leaders_.size() < world.size();
  if (!shares || !memory) return;
  memory_ = memory;
  local_size_ = static_cast<int>(memory->ranks().size());
  local_index_ = memory->index();
  slot_ = memory->allocate(kSlotBytes);
  staging_ = memory->allocate(kStagingBytes);
}

void HostTeam::sort_ranks(const Group& world, std::span<const std::int64_t> leader_of) {
  std::vector<std::vector<int>> hosts;
  std::size_t own_host = 0, own_place = 0;
  for (std::size_t i = 0; i < leader_of.size(); ++i) {
    const auto found = std::find_if(hosts.begin(), hosts.end(),
                                    [&](const auto& host) { return host[0] == leader_of[i]; });
    const std::size_t host = std::size_t(found - hosts.begin());
    if (found == hosts.end()) hosts.emplace_back();
    hosts[host].push_back(world.ranks[i]);
    if (int(i) != world.index) continue;
    own_host = host;
    own_place = hosts[host].size() - 1;
  }
  leaders_.index = counterparts_.index = static_cast<int>(own_host);
  for (const std::vector<int>& host : hosts) {
    leaders_.ranks.push_back(host[0]);
    even_ = even_ && host.size() == hosts[0].size();
  }
  for (const std::vector<int>& host : hosts)
    if (even_) counterparts_.ranks.push_back(host[own_place]);
}

bool HostTeam::in_shared_memory(std::span<std::byte> buffer) const {
  return local_size_ > 1 && memory_->in_region_of(local_index_, buffer.data()) != nullptr;
}

void HostTeam::compare(std::span<std::byte> buffer, double timeout_s) {
  if (local_size_ == 1) return;
  // A buffer's distance from the own slot is the same on all ranks if it is the same piece.
  const std::uint64_t mine = in_shared_memory(buffer)
                                 ? static_cast<std::uint64_t>(buffer.data() - slot_.data())
                                 : kPrivate;
  std::memcpy(slot_.data(), &mine, sizeof mine);
  barrier(timeout_s);
  for (int local = 0; local < local_size_; ++local) {
    std::uint64_t theirs = 0;
    std::memcpy(&theirs, of(local, slot_.data()), sizeof theirs);
    if (theirs == mine) continue;
    throw TransportError(fmt::format(
        "rank {} and rank {} reduce different pieces of shared memory: all ranks of a host must "
        "give the same piece, or none",
        memory_->ranks()[std::size_t(local)], memory_->ranks()[std::size_t(local_index_)]));
  }
}

}  // namespace convoy
