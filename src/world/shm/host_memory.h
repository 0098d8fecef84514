#pragma once

#include <functional>
#include <span>
#include <vector>

#include "world/host_memory.h"
#include "world/shm/links.h"
#include "world/shm/neighbours.h"

namespace convoy::shm {

// The regions of a Segment. The task that owns the Transport makes all calls; messages go on while
// it waits in barrier(). After a barrier that has thrown, no other can succeed.
class SegmentHostMemory final : public HostMemory {
 public:
  // Makes progress and sleeps until done() says true (true) or the time is over.
  using Wait = std::function<bool(double timeout_s, const std::function<bool()>& done)>;

  SegmentHostMemory(Neighbours& neighbours, Links& links, std::span<const int> ranks);

  // From now on barrier() waits this way: for a transport whose messages are not in the segment
  // alone.
  void wait_by(Wait wait) { wait_ = std::move(wait); }

  std::span<const int> ranks() const override { return ranks_; }
  int index() const override { return neighbours_.index(); }
  std::span<std::byte> allocate(std::size_t bytes) override;
  std::byte* in_region_of(int index, const std::byte* own) override;
  void barrier(double timeout_s) override;

 private:
  // Takes back that this rank came to barrier number `round`; false: too late, it is over.
  bool withdraw(std::uint32_t round);
  bool over(std::uint32_t round);
  bool await(std::uint32_t round, double timeout_s);
  // Throws PeerLost if a rank is gone for which the barrier would wait for ever.
  void find_loss(std::uint32_t round);
  std::string missing_text(std::uint32_t round);

  Neighbours& neighbours_;
  Links& links_;
  const std::vector<int> ranks_;
  Wait wait_;
  std::size_t used_ = 0;
};

}  // namespace convoy::shm
