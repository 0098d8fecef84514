#pragma once

#include "world/host_memory.h"
#include "world/inproc/inproc_hub.h"

namespace convoy {

// Regions of plain memory: threads share it anyway.
class InprocHostMemory final : public HostMemory {
 public:
  InprocHostMemory(InprocHub& hub, int rank);
  ~InprocHostMemory() override;

  std::span<const int> ranks() const override { return hub_.ranks_of_host(rank_); }
  int index() const override { return index_; }
  std::span<std::byte> allocate(std::size_t bytes) override;
  std::byte* in_region_of(int index, const std::byte* own) override;
  void barrier(double timeout_s) override;

 private:
  InprocHub& hub_;
  InprocHub::Host& host_;
  int rank_;
  int index_;
  std::byte* region_;
  std::size_t used_ = 0;
};

}  // namespace convoy
