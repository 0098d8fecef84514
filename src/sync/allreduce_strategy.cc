#include "sync/allreduce_strategy.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace convoy {

AllReduceStrategy::AllReduceStrategy(CommTask& comm, WireFormat& wire, Optimizer& optimizer,
                                     std::span<float> gradients, bool overlap)
    : comm_(comm), wire_(wire), optimizer_(optimizer), gradients_(gradients), overlap_(overlap) {}

void AllReduceStrategy::set_plan(BucketPlan plan) {
  CHECK(std::all_of(job_.begin(), job_.end(), [](std::uint64_t job) { return job == 0; }),
        "a new plan while buckets are under way");
  plan_ = std::move(plan);
  job_.assign(plan_.buckets.size(), 0);
}

void AllReduceStrategy::bucket_ready(const Bucket& bucket) {
  CHECK(bucket.id == ready_, "bucket {} is ready before bucket {}", bucket.id, ready_);
  ++ready_;
  if (overlap_) send_ready();
}

void AllReduceStrategy::send_ready() {
  for (; next_ < plan_.order.size() && plan_.order[next_].bucket < ready_; ++next_) {
    const Slice slice = plan_.order[next_];
    const auto values = gradients_.subspan(slice.begin, slice.end - slice.begin);
    job_[std::size_t(slice.bucket)] = comm_.post(
        [this, slice, values](Communicator& communicator) {
          wire_.sum(communicator, slice.begin, values);
        },
        values.size_bytes());
  }
}

void AllReduceStrategy::end_step(const UpdateRate& rate, std::vector<ArenaRange> moved) {
  CHECK(moved.empty(), "weights moved before their gradients were summed");
  CHECK(ready_ == int(plan_.buckets.size()), "{} of {} buckets are ready at the end of a step",
        ready_, plan_.buckets.size());
  send_ready();
  rate_ = rate;
  next_ = 0;
  ready_ = 0;
}

void AllReduceStrategy::await(const Bucket& bucket) {
  if (const std::uint64_t job = job_[std::size_t(bucket.id)]; job != 0) comm_.wait(job);
}

void AllReduceStrategy::apply(const Bucket& bucket) {
  if (std::exchange(job_[std::size_t(bucket.id)], 0) != 0)
    optimizer_.update(bucket.begin, bucket.end, rate_.rate, rate_.update);
}

}  // namespace convoy
