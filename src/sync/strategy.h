// How the gradients that a worker computes become the weights of its next step. Whether new values
// came from an all-reduce and a local update, or from a push, a remote update and a pull, the
// trainer cannot tell. Forward awaits a bucket just before the first layer that reads it, so that
// communication hides behind backward and behind the next forward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/parameters.h"

namespace convoy {

// Part of the parameter arena that travels and is updated as one: whole parameters of
// neighbouring layers. The arena is in the order in which backward finishes, so buckets become
// ready one after the other.
struct Bucket {
  int id = 0;
  std::size_t begin = 0, end = 0;  // in floats
};

// What the update that ends a step needs.
struct UpdateRate {
  float rate = 0;
  std::int64_t update = 0;  // counted from 1
};

// For one step: bucket_ready() for every bucket in order, end_step(), and, before the values of a
// bucket are read again, await() and apply(). Called by the task that computes.
class SyncStrategy {
 public:
  virtual ~SyncStrategy() = default;
  // Its gradients are final: may start sending. Never blocks.
  virtual void bucket_ready(const Bucket& bucket) = 0;
  // Moves weights while backward runs, where that may be; null where gradients travel first.
  virtual WeightUpdate* in_backward(const UpdateRate& rate) {
    static_cast<void>(rate);
    return nullptr;
  }
  // Before end_step(): this worker's gradients are not finite, and zero now. Where weights are
  // shared, nobody moves them in this step.
  virtual void veto() {}
  // Every bucket was ready; the rate is that of the update which the gradients make. `moved` are
  // the ranges that in_backward() has moved already.
  virtual void end_step(const UpdateRate& rate, std::vector<ArenaRange> moved) = 0;
  // Returns when what the bucket's new values are made of is here. Does nothing after the first
  // time in a step.
  virtual void await(const Bucket& bucket) = 0;
  // After await: makes the values those that the coming step must read.
  virtual void apply(const Bucket& bucket) = 0;
};

}  // namespace convoy
