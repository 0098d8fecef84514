#include "sync/invariant_strategy.h"

#include <algorithm>

#include "base/check.h"
#include "sync/exact.h"

namespace convoy {

InvariantStrategy::InvariantStrategy(CommTask& comm, Optimizer& optimizer, Parameters& parameters,
                                     ShardStore& shards)
    : comm_(comm),
      optimizer_(optimizer),
      parameters_(parameters),
      shards_(shards),
      sum_(shards.size()) {}

void InvariantStrategy::end_step(const UpdateRate& rate, std::vector<ArenaRange> moved) {
  CHECK(moved.empty(), "weights moved before their gradients were summed");
  rate_ = rate;
  job_ = comm_.post(
      [this](Communicator& communicator) {
        all_reduce_exact(communicator, shards_.shards(), sum_);
      },
      sum_.size() * sizeof(float));
}

void InvariantStrategy::await(const Bucket&) {
  if (job_ != 0) comm_.wait(job_);
}

void InvariantStrategy::apply(const Bucket& bucket) {
  if (job_ == 0) return;
  job_ = 0;
  shards_.clear();
  const std::span<float> gradients = parameters_.gradients();
  std::copy_n(sum_.begin(), gradients.size(), gradients.begin());
  shards_.set_buffers(std::span(sum_).subspan(gradients.size()));
  optimizer_.update(bucket.begin, bucket.end, rate_.rate, rate_.update);
}

}  // namespace convoy
