#include "sync/invariant_strategy.h"

#include <algorithm>

#include "base/check.h"
#include "sync/exact.h"

namespace convoy {

InvariantStrategy::InvariantStrategy(CommTask& comm, Optimizer& optimizer, Parameters& parameters)
    : comm_(comm), optimizer_(optimizer), parameters_(parameters) {
  std::size_t buffers = 0;
  for (const Buffer& buffer : parameters.buffers()) buffers += buffer.values.size();
  before_.resize(buffers);
  sum_.resize(parameters.gradients().size() + buffers);
}

void InvariantStrategy::copy_buffers(std::span<float> to) const {
  auto place = to.begin();
  for (const Buffer& buffer : parameters_.buffers())
    place = std::copy(buffer.values.begin(), buffer.values.end(), place);
}

void InvariantStrategy::set_buffers(std::span<const float> from) {
  auto place = from.begin();
  for (Buffer& buffer : parameters_.buffers()) {
    const auto end = place + std::ptrdiff_t(buffer.values.size());
    std::copy(place, end, buffer.values.begin());
    place = end;
  }
}

void InvariantStrategy::begin_shard() {
  if (used_ == 0)
    copy_buffers(before_);
  else
    set_buffers(before_);
}

void InvariantStrategy::end_shard(double share) {
  if (used_ == shards_.size()) shards_.emplace_back(sum_.size());
  std::vector<float>& shard = shards_[used_++];
  const std::span<const float> gradients = parameters_.gradients();
  std::copy(gradients.begin(), gradients.end(), shard.begin());
  const std::span<float> buffers = std::span(shard).subspan(gradients.size());
  copy_buffers(buffers);
  for (float& value : buffers) value = float(value * share);
}

void InvariantStrategy::end_step(const UpdateRate& rate, std::vector<ArenaRange> moved) {
  CHECK(moved.empty(), "weights moved before their gradients were summed");
  rate_ = rate;
  job_ = comm_.post(
      [this](Communicator& communicator) {
        std::vector<std::span<const float>> shards(shards_.begin(),
                                                   shards_.begin() + std::ptrdiff_t(used_));
        all_reduce_exact(communicator, shards, sum_);
      },
      sum_.size() * sizeof(float));
}

void InvariantStrategy::await(const Bucket&) {
  if (job_ != 0) comm_.wait(job_);
}

void InvariantStrategy::apply(const Bucket& bucket) {
  if (job_ == 0) return;
  job_ = 0;
  used_ = 0;
  const std::span<float> gradients = parameters_.gradients();
  std::copy_n(sum_.begin(), gradients.size(), gradients.begin());
  set_buffers(std::span(sum_).subspan(gradients.size()));
  optimizer_.update(bucket.begin, bucket.end, rate_.rate, rate_.update);
}

}  // namespace convoy
