// Elementwise update steps of the optimizers, over spans of one length that do not overlap. Each
// reads and writes every number once, runs on the calling thread, and gives the same bits however a
// range is cut into spans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace convoy {

// value -= rate * (gradient + decay * value)
void sgd_step(std::span<float> values, std::span<const float> gradients, float rate, float decay);

struct MomentumStep {
  float rate = 0;
  float momentum = 0;
  float decay = 0;
};

// With d = gradient + decay * value:
// velocity = momentum * velocity + d;  value -= rate * velocity
void momentum_step(std::span<float> values, std::span<const float> gradients,
                   std::span<float> velocity, const MomentumStep& step);
// velocity = momentum * velocity + d;  value -= rate * (d + momentum * velocity)
void nesterov_step(std::span<float> values, std::span<const float> gradients,
                   std::span<float> velocity, const MomentumStep& step);
// velocity = momentum * velocity + rate * d;  value -= velocity. The rate is inside the velocity,
// so that a layer whose own rate changes from step to step keeps what it has gathered (You et al.
// 2017).
void lars_step(std::span<float> values, std::span<const float> gradients, std::span<float> velocity,
               const MomentumStep& step);

struct AdamStep {
  float rate = 0;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float decay = 0;
  std::int64_t update = 1;  // counts from 1; corrects the bias of the moments
};

// With d = gradient + decay * value:
// first = beta1 * first + (1 - beta1) * d;  second = beta2 * second + (1 - beta2) * d * d;
// value -= rate / (1 - beta1^update) * first / (sqrt(second) / sqrt(1 - beta2^update) + epsilon)
void adam_step(std::span<float> values, std::span<const float> gradients, std::span<float> first,
               std::span<float> second, const AdamStep& step);

// Square roots of the sums of squares of two spans of one length, in one pass on all threads.
// Summed in double over chunks of fixed size: the same bits for any number of threads.
struct Norms {
  double values = 0;
  double gradients = 0;
};
Norms norms(std::span<const float> values, std::span<const float> gradients);

}  // namespace convoy
