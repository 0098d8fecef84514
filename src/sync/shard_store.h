// The shards of a step, each computed by itself: what invariant training sums exactly. Batch norm
// takes its statistics from a shard; the running statistics become the mean, by samples, of what
// each shard made of them, so that they are summed beside the gradients.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nn/parameters.h"

namespace convoy {

class ShardStore {
 public:
  explicit ShardStore(Parameters& parameters);

  // Around forward and backward of each of the own shards. `share` is the shard's part of the
  // batch, by samples.
  void begin_shard();
  void end_shard(double share);

  // Gradients, then buffers, of each shard of this step.
  std::vector<std::span<const float>> shards() const {
    return {shards_.begin(), shards_.begin() + std::ptrdiff_t(used_)};
  }
  std::size_t size() const { return parameters_.gradients().size() + before_.size(); }
  std::size_t buffers() const { return before_.size(); }
  void clear() { used_ = 0; }
  void set_buffers(std::span<const float> from);

 private:
  void copy_buffers(std::span<float> to) const;

  Parameters& parameters_;
  std::vector<std::vector<float>> shards_;  // kept from step to step
  std::size_t used_ = 0;
  std::vector<float> before_;  // buffers at the start of the step
};

}  // namespace convoy
