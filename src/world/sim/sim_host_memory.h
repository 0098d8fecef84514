#pragma once

#include <memory>
#include <vector>

#include "world/host_memory.h"
#include "world/sim/network.h"

namespace convoy {

// The shared memory of one simulated host. Real memory, so that arithmetic on it is real too; the
// time that it takes is modelled: moved() and barrier() let it pass.
class SimHost {
 public:
  SimHost(SimNetwork& network, std::vector<int> ranks, std::size_t region_bytes, double bytes_per_s,
          double barrier_s);
  ~SimHost();
  SimHost(const SimHost&) = delete;
  SimHost& operator=(const SimHost&) = delete;

 private:
  friend class SimHostMemory;

  std::byte* region(int index);

  SimNetwork& network_;
  std::vector<int> ranks_;
  std::size_t region_bytes_;
  double ps_per_byte_;
  SimTime barrier_;
  SimTime memory_free_ = 0;
  std::vector<std::byte*> regions_;  // null: not asked for yet
  int arrived_ = 0;
  std::uint64_t round_ = 0;
  std::vector<TaskId> waiting_;
};

class SimHostMemory final : public HostMemory {
 public:
  SimHostMemory(SimHost& host, int rank);

  std::span<const int> ranks() const override { return host_.ranks_; }
  int index() const override { return index_; }
  std::span<std::byte> allocate(std::size_t bytes) override;
  std::byte* in_region_of(int index, const std::byte* own) override;
  void barrier(double timeout_s) override;
  void moved(std::size_t bytes) override;

 private:
  SimHost& host_;
  int rank_;
  int index_;
  std::size_t used_ = 0;
};

}  // namespace convoy
