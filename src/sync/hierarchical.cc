// Ranks of one host reduce through the memory that they share; hosts reduce by rings.
//
// Buffers in shared memory are cut into a chunk per rank of the host. Rank r of every host reads
// chunk r of all buffers of its host and adds them in the order of the ranks, once through memory.
// On one host it writes the sum straight into all buffers: two barriers are all that is sent. Among
// several hosts of equal size, it runs a ring with the ranks r of the other hosts over chunk r
// first: all ranks use the network, each for its part. Among unequal hosts the first rank of each
// runs one ring over all.
//
// Buffers elsewhere are staged through shared memory piece by piece, at the cost of two copies.
#include <algorithm>
#include <array>
#include <cstring>

#include "sync/algorithms.h"
#include "sync/host_team.h"
#include "sync/intent_check.h"
#include "sync/reduce_kernels.h"

namespace convoy {
namespace {

constexpr int kMostOnHost = 256;
constexpr std::size_t kPieceOnHost = std::size_t{1} << 20;  // stays in the second-level cache

class HostReduction {
 public:
  HostReduction(const Operation& operation, HostTeam& team)
      : operation_(operation), team_(team), size_(team.local_size()), index_(team.local_index()) {
    if (size_ > kMostOnHost)
      throw ConfigError("{} ranks on one host: hierarchical goes up to {}", size_, kMostOnHost);
  }

  // `shared` is the same piece of shared memory on every rank of the host, and all have come.
  void run(std::span<std::byte> shared) {
    const Range own = part_of(shared.size() / operation_.width(), size_, index_);
    const std::span<std::byte> chunk =
        shared.subspan(own.begin * operation_.width(), own.count * operation_.width());
    const std::span<std::byte* const> all = places(chunk);
    if (team_.one_host()) {
      add_up(all, chunk.size(), operation_.factor, all);
    } else if (team_.even()) {
      add_up(all, chunk.size(), 1, all.subspan(std::size_t(index_), 1));
      ring(operation_.among(team_.counterparts()), chunk);
      copy_to_others(chunk, all);
    } else {
      add_up(all, chunk.size(), 1, all.first(1));
      barrier();
      if (index_ == 0) ring(operation_.among(team_.leaders()), shared);
      barrier();
      if (index_ != 0 && !shared.empty()) {
        std::memcpy(shared.data(), team_.of(0, shared.data()), shared.size());
        team_.moved(2 * shared.size());
      }
    }
    barrier();
  }

  void barrier() { team_.barrier(operation_.timeout_s); }

 private:
  std::span<std::byte* const> places(std::span<std::byte> chunk) {
    for (int local = 0; local < size_; ++local)
      places_[std::size_t(local)] = team_.of(local, chunk.data());
    return std::span(places_).first(std::size_t(size_));
  }
  void add_up(std::span<std::byte* const> sources, std::size_t bytes, double factor,
              std::span<std::byte* const> targets) {
    combine_all(operation_.element, operation_.reduction, factor,
                {const_cast<const std::byte* const*>(sources.data()), sources.size()}, targets,
                bytes / operation_.width());
    team_.moved(bytes * (sources.size() + targets.size()));
  }
  void copy_to_others(std::span<const std::byte> chunk, std::span<std::byte* const> all) {
    if (chunk.empty()) return;
    for (std::byte* other : all)
      if (other != chunk.data()) std::memcpy(other, chunk.data(), chunk.size());
    team_.moved(chunk.size() * all.size());
  }

  const Operation& operation_;
  HostTeam& team_;
  const int size_;
  const int index_;
  std::array<std::byte*, kMostOnHost> places_{};
};

}  // namespace

void hierarchical(const Operation& operation, std::span<std::byte> buffer) {
  HostTeam* const team = operation.team;
  if (!team || !team->shares()) {
    // No memory to share: every rank is the leader of a host of its own. Where another host has
    // several ranks, its leader runs the same ring.
    const bool among_leaders = team && team->leaders().size() < operation.size();
    ring(among_leaders ? operation.among(team->leaders()) : operation, buffer);
    return;
  }
  // Barriers hear nothing of the check of intents: it comes first.
  if (operation.intent_check) operation.intent_check->finish(operation.timeout_s);
  // With nothing to add up, no barrier would keep the next comparison from a rank that still reads
  // this one.
  if (buffer.empty()) return;
  HostReduction reduction(operation, *team);
  team->compare(buffer, operation.timeout_s);
  const bool in_place = team->local_size() == 1 || team->in_shared_memory(buffer);
  // Hosts whose buffers lie elsewhere than others' must still run the same rings.
  const std::size_t most = !team->one_host() ? team->staging().size()
                           : in_place        ? std::max<std::size_t>(buffer.size(), 1)
                                             : kPieceOnHost;
  for (std::size_t begin = 0; begin < buffer.size(); begin += most) {
    const std::span<std::byte> part = buffer.subspan(begin, std::min(most, buffer.size() - begin));
    if (in_place) {
      reduction.run(part);
      continue;
    }
    const std::span<std::byte> staged = team->staging().first(part.size());
    std::memcpy(staged.data(), part.data(), part.size());
    reduction.barrier();
    reduction.run(staged);
    std::memcpy(part.data(), staged.data(), part.size());
    team->moved(4 * part.size());
  }
}

}  // namespace convoy
