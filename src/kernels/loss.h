// Softmax cross-entropy over plain logits [batch][classes], by log-softmax: finite for any finite
// logits.
#pragma once

#include <cstdint>
#include <span>

namespace convoy {

struct LossOptions {
  float label_smoothing = 0;  // share of the target spread evenly over all classes
  int mean_over = 0;          // samples that gradients are the mean over; 0: those of the batch
};

struct LossSums {
  double loss = 0;  // summed over the batch
  int correct = 0;  // logits whose largest is the label's (the first of equals counts)
};

// Fills `gradients` (of the loss's MEAN over options.mean_over, same shape as logits) unless it is
// empty.
LossSums softmax_cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels,
                               int classes, const LossOptions& options, std::span<float> gradients);

}  // namespace convoy
