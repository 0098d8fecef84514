// In what pieces and in which order gradients travel. Backward makes them last layer first; the
// next forward needs the first layer first. While the link keeps up, pieces go as they come; where
// it does not, those that are needed first overtake.
//
// All ranks must send the same pieces in the same order, and do not ask one another each time: the
// order is planned once, from times that all have agreed on, and then kept.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nn/parameters.h"
#include "sync/strategy.h"

namespace convoy {

// Part of a bucket that is sent as one operation.
struct Slice {
  int bucket = 0;
  std::size_t begin = 0, end = 0;
  bool operator==(const Slice&) const = default;
};

struct BucketPlan {
  std::vector<Bucket> buckets;  // they cover the arena, in order
  std::vector<Slice> order;
  double step_s = 0;  // as predicted, from the start of backward to the end of the next forward
};

// A layer's part of the arena, in arena order.
struct LayerRange {
  NodeId node = 0;
  std::size_t begin = 0, end = 0;
};
std::vector<LayerRange> layer_ranges(const Parameters& parameters);

// Buckets of whole layers, of at least so many bytes each (the last may be smaller), sent whole and
// as they come.
BucketPlan simple_plan(std::span<const LayerRange> layers, std::size_t bucket_bytes);

// When a layer's gradients are final, counted from the start of backward, and when its weights are
// read, counted from the start of forward.
struct LayerMoment {
  double ready_s = 0;
  double needed_s = 0;
};

struct StepTimes {
  std::vector<LayerMoment> layers;  // as in layer_ranges
  double forward_s = 0;
  double backward_s = 0;
  double alpha_s = 0;  // an operation on n bytes takes alpha + n * per_byte
  double per_byte_s = 0;
};

// The plan under which a step is predicted to take least time, over sizes of buckets and slices and
// both orders. Depends on nothing but its arguments.
BucketPlan best_plan(std::span<const LayerRange> layers, const StepTimes& times);

}  // namespace convoy
