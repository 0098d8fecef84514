#include "world/inproc/inproc_host_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/check.h"

namespace convoy {

InprocHostMemory::InprocHostMemory(InprocHub& hub, int rank)
    : hub_(hub), host_(hub.host(rank)), rank_(rank) {
  const std::vector<int>& ranks = hub_.ranks_of_host(rank);
  index_ = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  const std::lock_guard lock(host_.mutex);
  region_ = host_.regions[index_];
}

InprocHostMemory::~InprocHostMemory() = default;

std::span<std::byte> InprocHostMemory::allocate(std::size_t bytes) {
  const std::size_t begin = used_;
  const std::size_t rounded = (bytes + 63) / 64 * 64;
  if (rounded > hub_.region_bytes() - used_)
    throw TransportError(
        fmt::format("rank {}: {} bytes of shared memory asked for, {} are left "
                    "(see ulimit -v)",
                    rank_, bytes, hub_.region_bytes() - used_));
  used_ += rounded;
  return {region_ + begin, bytes};
}

std::byte* InprocHostMemory::in_region_of(int index, const std::byte* own) {
  if (own < region_ || own >= region_ + used_) return nullptr;
  return host_.regions[index] + (own - region_);
}

void InprocHostMemory::barrier(double timeout_s) {
  hub_.obey(rank_);
  const Patience patience(timeout_s);
  std::unique_lock lock(host_.mutex);
  const std::uint64_t round = host_.round;
  if (++host_.arrived == static_cast<int>(host_.regions.size())) {
    host_.arrived = 0;
    ++host_.round;
    host_.changed.notify_all();
    return;
  }
  while (host_.round == round) {
    lock.unlock();  // never a mailbox and the host at once
    const auto missing = hub_.missing(rank_);
    hub_.obey(rank_);
    lock.lock();
    if (host_.round != round) break;
    if (missing || patience.over()) {
      --host_.arrived;
      if (missing) throw PeerLost(missing->first, missing->second);
      throw DeadlineExceeded(
          fmt::format("rank {}: the ranks of its host did not all reach the barrier within {} s",
                      rank_, timeout_s));
    }
    // A rank that ends between the look above and this wait notifies in vain: look again soon.
    host_.changed.wait_for(lock, std::chrono::duration<double>(std::min(patience.left_s(), 0.002)));
  }
}

}  // namespace convoy
