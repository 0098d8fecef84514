// Gradients are summed over all workers, and each worker makes the same update itself. Sums travel
// while backward and the next forward run; the update of a bucket is made just before it is read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optim/optimizer.h"
#include "sync/bucket_plan.h"
#include "sync/comm_task.h"
#include "sync/strategy.h"
#include "sync/wire_format.h"

namespace convoy {

class AllReduceStrategy final : public SyncStrategy {
 public:
  // All outlive the strategy. Without overlap nothing is sent before backward has ended.
  AllReduceStrategy(CommTask& comm, WireFormat& wire, Optimizer& optimizer,
                    std::span<float> gradients, bool overlap);

  // Between two steps, with nothing left to await: all ranks at the same step.
  void set_plan(BucketPlan plan);
  const BucketPlan& plan() const { return plan_; }

  void bucket_ready(const Bucket& bucket) override;
  void end_step(const UpdateRate& rate, std::vector<ArenaRange> moved) override;
  void await(const Bucket& bucket) override;
  void apply(const Bucket& bucket) override;

 private:
  void send_ready();

  CommTask& comm_;
  WireFormat& wire_;
  Optimizer& optimizer_;
  std::span<float> gradients_;
  const bool overlap_;
  BucketPlan plan_;
  UpdateRate rate_;
  std::size_t next_ = 0;            // slices of the order that were sent in this step
  int ready_ = 0;                   // buckets below are ready
  std::vector<std::uint64_t> job_;  // of a bucket's last slice; 0: applied
};

}  // namespace convoy
