// Weights that do not depend on the number of workers, in any bit. Every batch is cut into a fixed
// number of shards; each is computed by itself, and their gradients are summed exactly (exact.h).
// Batch norm takes its statistics from a shard; the running statistics become the mean, by samples,
// of what each shard made of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optim/optimizer.h"
#include "sync/comm_task.h"
#include "sync/strategy.h"

namespace convoy {

class InvariantStrategy final : public SyncStrategy {
 public:
  // All outlive the strategy. Its one bucket is the whole arena.
  InvariantStrategy(CommTask& comm, Optimizer& optimizer, Parameters& parameters);

  // Around forward and backward of each of the own shards. `share` is the shard's part of the
  // batch, by samples.
  void begin_shard();
  void end_shard(double share);

  void bucket_ready(const Bucket&) override {}
  void end_step(const UpdateRate& rate, std::vector<ArenaRange> moved) override;
  void await(const Bucket& bucket) override;
  void apply(const Bucket& bucket) override;

 private:
  void copy_buffers(std::span<float> to) const;
  void set_buffers(std::span<const float> from);

  CommTask& comm_;
  Optimizer& optimizer_;
  Parameters& parameters_;
  UpdateRate rate_;
  std::vector<std::vector<float>> shards_;  // gradients, then buffers; kept from step to step
  std::size_t used_ = 0;
  std::vector<float> before_;  // buffers at the start of the step
  std::vector<float> sum_;
  std::uint64_t job_ = 0;
};

}  // namespace convoy
