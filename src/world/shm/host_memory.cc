#include "world/shm/host_memory.h"

#include <sys/mman.h>

#include "base/check.h"
#include "base/error.h"

namespace convoy::shm {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::uint32_t come_count(std::uint64_t state) { return static_cast<std::uint32_t>(state); }
std::uint32_t over_count(std::uint64_t state) { return static_cast<std::uint32_t>(state >> 32); }

}  // namespace

SegmentHostMemory::SegmentHostMemory(Neighbours& neighbours, Links& links,
                                     std::span<const int> ranks)
    : neighbours_(neighbours), links_(links), ranks_(ranks.begin(), ranks.end()) {}

std::span<std::byte> SegmentHostMemory::allocate(std::size_t bytes) {
  const std::span<std::byte> region = neighbours_.segment().region(index());
  const std::size_t begin = round_up(used_, bytes >= kHugePage ? kHugePage : kLine);
  if (begin > region.size() || bytes > region.size() - begin) {
    throw TransportError(fmt::format("shared memory: {} bytes asked for, {} of {} taken", bytes,
                                     used_, region.size()));
  }
  used_ = begin + bytes;
  const std::span<std::byte> piece = region.subspan(begin, bytes);
  if (bytes >= kHugePage) madvise(piece.data(), bytes, MADV_HUGEPAGE);  // where the system may
  return piece;
}

std::byte* SegmentHostMemory::in_region_of(int index, const std::byte* own) {
  CHECK(index >= 0 && index < neighbours_.count(), "region {} of {}", index, neighbours_.count());
  const std::span<std::byte> region = neighbours_.segment().region(neighbours_.index());
  // Addresses of unlike origin: compared as numbers.
  const std::uintptr_t offset =
      reinterpret_cast<std::uintptr_t>(own) - reinterpret_cast<std::uintptr_t>(region.data());
  if (offset >= used_) return nullptr;
  return neighbours_.segment().region(index).data() + offset;
}

void SegmentHostMemory::barrier(double timeout_s) {
  std::atomic<std::uint64_t>& state = neighbours_.segment().barrier().state;
  const auto count = static_cast<std::uint32_t>(neighbours_.count());
  const std::uint32_t round = over_count(state.load()) + 1;
  neighbours_.segment().slot(index()).barriers.store(round, std::memory_order_relaxed);
  const std::uint64_t opened = std::uint64_t{round} << 32;
  std::uint64_t seen = state.load(), next;
  do {
    next = come_count(seen) + 1 == count ? opened : seen + 1;
  } while (!state.compare_exchange_weak(seen, next));
  if (next == opened) {  // the last one has come
    for (int peer = 0; peer < neighbours_.count(); ++peer) neighbours_.ring(peer);
    return;
  }
  if (!await(round, timeout_s) && withdraw(round)) {
    throw DeadlineExceeded(fmt::format("rank {}: in barrier #{} of the host for {} s without {}",
                                       ranks_[index()], round, timeout_s, missing_text(round)));
  }
}

bool SegmentHostMemory::await(std::uint32_t round, double timeout_s) {
  if (wait_)
    return wait_(timeout_s, [&] {
      if (!over(round)) find_loss(round);
      return over(round);
    });
  return neighbours_.wait_until(timeout_s, [&](bool thorough) {
    if (over(round)) return Neighbours::Look::done;
    const bool moved = links_.progress(thorough);
    if (thorough) find_loss(round);
    return moved ? Neighbours::Look::moved : Neighbours::Look::nothing;
  });
}

bool SegmentHostMemory::over(std::uint32_t round) {
  return over_count(neighbours_.segment().barrier().state.load()) >= round;
}

bool SegmentHostMemory::withdraw(std::uint32_t round) {
  std::atomic<std::uint64_t>& state = neighbours_.segment().barrier().state;
  std::uint64_t seen = state.load();
  do {
    if (over_count(seen) >= round) return false;
  } while (!state.compare_exchange_weak(seen, seen - 1));
  neighbours_.segment().slot(index()).barriers.store(round - 1, std::memory_order_relaxed);
  return true;
}

void SegmentHostMemory::find_loss(std::uint32_t round) {
  for (int peer = 0; peer < neighbours_.count(); ++peer) {
    const auto departure = neighbours_.departure(peer);
    // Who goes after the barrier goes when it is over.
    if (departure && !over(round) && withdraw(round)) throw PeerLost(ranks_[peer], departure->why);
  }
}

std::string SegmentHostMemory::missing_text(std::uint32_t round) {
  std::string text;
  for (int peer = 0; peer < neighbours_.count(); ++peer) {
    if (peer == index() || neighbours_.segment().slot(peer).barriers.load() == round) continue;
    text += fmt::format("{}rank {} ({})", text.empty() ? "" : ", ", ranks_[peer],
                        neighbours_.sighting_text(peer));
  }
  return text;
}

}  // namespace convoy::shm
