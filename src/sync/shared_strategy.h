// All workers are on one host and share memory: there is one set of weights and of the optimizer's
// state, and each worker sums the gradients of a part of the arena, straight from where the workers
// left them, and updates that part. Nothing else moves: no sum is written back, and no update is
// made twice.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optim/optimizer.h"
#include "sync/comm_task.h"
#include "sync/strategy.h"
#include "world/host_memory.h"

namespace convoy {

class SharedStrategy final : public SyncStrategy {
 public:
  // All outlive the strategy. `gradients` lies in the own region of `memory`, at the same place on
  // all workers; the optimizer is elementwise, and its values and state are the same memory on all.
  // All workers make one at the same time.
  SharedStrategy(CommTask& comm, HostMemory& memory, Optimizer& optimizer,
                 std::span<float> gradients);

  void bucket_ready(const Bucket&) override {}
  // Nobody's gradients are used in this step.
  void veto() override { veto_ = true; }
  void end_step(const UpdateRate& rate, std::vector<ArenaRange> moved) override;
  void await(const Bucket& bucket) override;
  // The first one updates the whole own part, and waits until the others have done so, too.
  void apply(const Bucket& bucket) override;

 private:
  void update_part();

  CommTask& comm_;
  Optimizer& optimizer_;
  std::span<float> gradients_;
  std::vector<const std::byte*> sources_;  // everybody's gradients
  std::vector<std::int32_t*> vetoes_;      // everybody's
  std::int32_t* own_veto_ = nullptr;       // one of them
  std::size_t begin_ = 0, end_ = 0;        // of the own part
  UpdateRate rate_;
  bool veto_ = false;
  bool vetoed_ = false;    // by anybody, in this step
  std::uint64_t job_ = 0;  // after which all gradients are there; 0: awaited
  bool due_ = false;       // an update
};

}  // namespace convoy
