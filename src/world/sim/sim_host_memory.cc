#include "world/sim/sim_host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace convoy {

SimHost::SimHost(SimNetwork& network, std::vector<int> ranks, std::size_t region_bytes,
                 double bytes_per_s, double barrier_s)
    : network_(network),
      ranks_(std::move(ranks)),
      region_bytes_(region_bytes),
      ps_per_byte_(1e12 / bytes_per_s),
      barrier_(to_sim_time(barrier_s)),
      regions_(ranks_.size()) {
  for (const int rank : ranks_)
    network_.on_departure(rank, [this] {
      for (const TaskId task : waiting_) network_.scheduler().wake(task);
    });
}

SimHost::~SimHost() {
  for (std::byte* const region : regions_)
    if (region != nullptr) munmap(region, region_bytes_);
}

std::byte* SimHost::region(int index) {
  if (regions_[index] == nullptr) {
    void* const made = mmap(nullptr, region_bytes_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED)
      throw TransportError(fmt::format("no {} bytes of memory to share", region_bytes_));
    regions_[index] = static_cast<std::byte*>(made);
  }
  return regions_[index];
}

SimHostMemory::SimHostMemory(SimHost& host, int rank) : host_(host), rank_(rank) {
  const auto place = std::find(host.ranks_.begin(), host.ranks_.end(), rank);
  index_ = static_cast<int>(place - host.ranks_.begin());
}

std::span<std::byte> SimHostMemory::allocate(std::size_t bytes) {
  const std::size_t rounded = (bytes + 63) / 64 * 64;
  if (rounded > host_.region_bytes_ - used_)
    throw TransportError(fmt::format("rank {}: {} bytes of shared memory asked for, {} are left",
                                     rank_, bytes, host_.region_bytes_ - used_));
  const std::size_t begin = std::exchange(used_, used_ + rounded);
  return {host_.region(index_) + begin, bytes};
}

std::byte* SimHostMemory::in_region_of(int index, const std::byte* own) {
  const std::byte* const begin = host_.regions_[index_];
  if (begin == nullptr || own < begin || own >= begin + used_) return nullptr;
  return host_.region(index) + (own - begin);
}

void SimHostMemory::barrier(double timeout_s) {
  Scheduler& scheduler = host_.network_.scheduler();
  scheduler.obey();
  const SimTime timeout = to_sim_time(timeout_s);
  const SimTime deadline = timeout == kNever ? kNever : scheduler.now() + timeout;
  const std::uint64_t round = host_.round_;
  if (++host_.arrived_ == static_cast<int>(host_.ranks_.size())) {
    host_.arrived_ = 0;
    ++host_.round_;
    for (const TaskId task : host_.waiting_) scheduler.wake(task);
  }
  while (host_.round_ == round) {
    const auto missing = host_.network_.missing(host_.ranks_, rank_);
    if (missing || scheduler.now() >= deadline) {
      --host_.arrived_;
      if (missing) throw PeerLost(missing->first, missing->second);
      throw DeadlineExceeded(
          fmt::format("rank {}: the ranks of its host did not all reach the barrier within {} s",
                      rank_, timeout_s));
    }
    const TaskId self = scheduler.current();
    host_.waiting_.push_back(self);
    scheduler.hold(deadline, "the others at the barrier of its host");
    std::erase(host_.waiting_, self);
    scheduler.obey();
  }
  const SimTime until = scheduler.now() + host_.barrier_;
  while (scheduler.now() < until) scheduler.block(until);
}

void SimHostMemory::moved(std::size_t bytes) {
  Scheduler& scheduler = host_.network_.scheduler();
  const SimTime begin = std::max(scheduler.now(), host_.memory_free_);
  host_.memory_free_ =
      begin + static_cast<SimTime>(static_cast<double>(bytes) * host_.ps_per_byte_);
  const SimTime until = host_.memory_free_;
  while (scheduler.now() < until) scheduler.block(until);
}

}  // namespace convoy
