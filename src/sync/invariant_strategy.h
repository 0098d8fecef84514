// Weights that do not depend on the number of workers, in any bit. Every batch is cut into a fixed
// number of shards; each is computed by itself (ShardStore), and their gradients are summed exactly
// (exact.h).
#pragma once

#include <cstdint>
#include <vector>

#include "optim/optimizer.h"
#include "sync/comm_task.h"
#include "sync/shard_store.h"
#include "sync/strategy.h"

namespace convoy {

class InvariantStrategy final : public SyncStrategy {
 public:
  // All outlive the strategy. Its one bucket is the whole arena.
  InvariantStrategy(CommTask& comm, Optimizer& optimizer, Parameters& parameters,
                    ShardStore& shards);

  void bucket_ready(const Bucket&) override {}
  void end_step(const UpdateRate& rate, std::vector<ArenaRange> moved) override;
  void await(const Bucket& bucket) override;
  void apply(const Bucket& bucket) override;

 private:
  CommTask& comm_;
  Optimizer& optimizer_;
  Parameters& parameters_;
  ShardStore& shards_;
  UpdateRate rate_;
  std::vector<float> sum_;
  std::uint64_t job_ = 0;
};

}  // namespace convoy
