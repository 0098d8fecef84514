#include "world/launch/cores.h"

#include <sched.h>

#include <algorithm>

#include "base/error.h"

namespace convoy {

std::string CoreShares::text() const {
  const auto counted = [](int count, const char* thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
  };
  const int ranks = int(of_rank.size());
  if (oversubscribed) return counted(ranks, "rank") + ", more than cores, not pinned";
  const bool pinned = ranks > 0 && !of_rank.front().empty();
  return fmt::format("{}, {} each, {}pinned", counted(ranks, "rank"), counted(per_rank, "core"),
                     pinned ? "" : "not ");
}

std::vector<int> own_cores() {
  // The kernel refuses a set that is smaller than its own.
  for (int bits = 1024; bits <= 1 << 20; bits *= 2) {
    cpu_set_t* set = CPU_ALLOC(bits);
    if (!set) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(bits);
    std::vector<int> cores;
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    for (int core = 0; known && core < bits; ++core)
      if (CPU_ISSET_S(core, bytes, set)) cores.push_back(core);
    CPU_FREE(set);
    if (known) return cores;
  }
  return {0};
}

CoreShares divide_cores(std::span<const int> cores, int limit, int ranks, int per_rank) {
  const int count = std::max(1, std::min(limit, int(cores.size())));
  CoreShares shares;
  shares.of_rank.resize(ranks);
  if (per_rank > 0 && ranks * per_rank > count)
    throw ConfigError(
        "{} ranks of {} cores each need {} cores, but there are {}: lower "
        "--cores-per-rank or -n",
        ranks, per_rank, ranks * per_rank, count);
  shares.oversubscribed = ranks > count;
  shares.per_rank = per_rank > 0 ? per_rank : std::max(1, count / ranks);
  // A quota below the number of cores leaves the choice of cores to the system.
  if (shares.oversubscribed || count < int(cores.size())) return shares;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto begin = cores.begin() + rank * shares.per_rank;
    shares.of_rank[rank].assign(begin, begin + shares.per_rank);
  }
  return shares;
}

}  // namespace convoy
