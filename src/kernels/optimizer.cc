#include "kernels/optimizer.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/parallel.h"

namespace convoy {
namespace {

using Eight = float __attribute__((vector_size(32), aligned(4), may_alias));

// A page ends what the CPU fetches ahead of its own accord: ask for a line of a later page.
inline void fetch_ahead(const float* at) {
  constexpr std::size_t kAhead = 4096;  // floats
  __builtin_prefetch(at + kAhead, 0, 2);
}

// Applies update(value, gradient, velocity) to each triple, of eight numbers or of one.
template <typename Update>
inline void for_each(std::span<float> values, std::span<const float> gradients,
                     std::span<float> velocity, Update update) {
  CHECK(values.size() == gradients.size() && values.size() == velocity.size(),
        "spans of {}, {} and {} floats", values.size(), gradients.size(), velocity.size());
  float* __restrict w = values.data();
  const float* __restrict g = gradients.data();
  float* __restrict v = velocity.data();
  const std::size_t count = values.size();
  const auto eight = [&](std::size_t i) {
    update(*reinterpret_cast<Eight*>(w + i), *reinterpret_cast<const Eight*>(g + i),
           *reinterpret_cast<Eight*>(v + i));
  };
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    fetch_ahead(w + i);
    fetch_ahead(v + i);
    eight(i);
    eight(i + 8);
  }
  for (; i < count; ++i) update(w[i], g[i], v[i]);
}

// The constants of an Adam step, with the corrections of the bias worked out in double.
struct AdamConstants {
  explicit AdamConstants(const AdamStep& step)
      : beta1(step.beta1),
        beta2(step.beta2),
        rest1(float(1.0 - double(step.beta1))),
        rest2(float(1.0 - double(step.beta2))),
        epsilon(step.epsilon),
        decay(step.decay),
        rate(float(step.rate / (1.0 - std::pow(double(step.beta1), double(step.update))))),
        root(float(1.0 / std::sqrt(1.0 - std::pow(double(step.beta2), double(step.update))))) {}
  float beta1, beta2, rest1, rest2, epsilon, decay;
  float rate;  // divided by 1 - beta1^update
  float root;  // 1 / sqrt(1 - beta2^update)
};

// One element: the same operations in the same order as the vector loop, hence the same bits.
inline void adam_element(float& w, float g, float& m, float& v, const AdamConstants& c) {
  const float d = g + c.decay * w;
  m = c.beta1 * m + c.rest1 * d;
  v = c.beta2 * v + c.rest2 * (d * d);
  w = w - c.rate * m / (std::sqrt(v) * c.root + c.epsilon);
}

// std::sqrt may set errno, which keeps the compiler from vectorising it: eight at a time by hand.
inline void adam_eight(float* w, const float* g, float* m, float* v, const AdamConstants& c) {
  const __m256 value = _mm256_loadu_ps(w);
  const __m256 d = _mm256_add_ps(_mm256_loadu_ps(g), _mm256_mul_ps(_mm256_set1_ps(c.decay), value));
  const __m256 first = _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(c.beta1), _mm256_loadu_ps(m)),
                                     _mm256_mul_ps(_mm256_set1_ps(c.rest1), d));
  const __m256 second = _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(c.beta2), _mm256_loadu_ps(v)),
                                      _mm256_mul_ps(_mm256_set1_ps(c.rest2), _mm256_mul_ps(d, d)));
  const __m256 divisor = _mm256_add_ps(
      _mm256_mul_ps(_mm256_sqrt_ps(second), _mm256_set1_ps(c.root)), _mm256_set1_ps(c.epsilon));
  const __m256 change = _mm256_div_ps(_mm256_mul_ps(_mm256_set1_ps(c.rate), first), divisor);
  _mm256_storeu_ps(m, first);
  _mm256_storeu_ps(v, second);
  _mm256_storeu_ps(w, _mm256_sub_ps(value, change));
}

// Sum of squares in sixteen lanes of double that are added up in a fixed order.
double sum_of_squares(const float* x, std::size_t count) {
  constexpr std::size_t kLanes = 16;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];
      lanes[lane] += value * value;
    }
  for (; i < count; ++i) lanes[i % kLanes] += double(x[i]) * double(x[i]);
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

void sgd_step(std::span<float> values, std::span<const float> gradients, float rate, float decay) {
  CHECK(values.size() == gradients.size(), "spans of {} and {} floats", values.size(),
        gradients.size());
  float* __restrict w = values.data();
  const float* __restrict g = gradients.data();
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) w[i] -= rate * (g[i] + decay * w[i]);
}

void momentum_step(std::span<float> values, std::span<const float> gradients,
                   std::span<float> velocity, const MomentumStep& step) {
  for_each(values, gradients, velocity,
           [rate = step.rate, momentum = step.momentum, decay = step.decay](auto& w, const auto& g,
                                                                            auto& v) {
             v = momentum * v + (g + decay * w);
             w -= rate * v;
           });
}

void nesterov_step(std::span<float> values, std::span<const float> gradients,
                   std::span<float> velocity, const MomentumStep& step) {
  for_each(values, gradients, velocity,
           [rate = step.rate, momentum = step.momentum, decay = step.decay](auto& w, const auto& g,
                                                                            auto& v) {
             const auto d = g + decay * w;
             v = momentum * v + d;
             w -= rate * (d + momentum * v);
           });
}

void lars_step(std::span<float> values, std::span<const float> gradients, std::span<float> velocity,
               const MomentumStep& step) {
  for_each(values, gradients, velocity,
           [rate = step.rate, momentum = step.momentum, decay = step.decay](auto& w, const auto& g,
                                                                            auto& v) {
             v = momentum * v + rate * (g + decay * w);
             w -= v;
           });
}

void adam_step(std::span<float> values, std::span<const float> gradients, std::span<float> first,
               std::span<float> second, const AdamStep& step) {
  const std::size_t count = values.size();
  CHECK(gradients.size() == count && first.size() == count && second.size() == count,
        "spans of {}, {}, {} and {} floats", count, gradients.size(), first.size(), second.size());
  CHECK(step.update >= 1, "update {}", step.update);
  const AdamConstants constants(step);
  float* w = values.data();
  const float* g = gradients.data();
  float* m = first.data();
  float* v = second.data();
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) adam_eight(w + i, g + i, m + i, v + i, constants);
  for (; i < count; ++i) adam_element(w[i], g[i], m[i], v[i], constants);
}

Norms norms(std::span<const float> values, std::span<const float> gradients) {
  CHECK(values.size() == gradients.size(), "spans of {} and {} floats", values.size(),
        gradients.size());
  constexpr std::size_t kChunk = 1 << 14;
  const std::size_t chunks = (values.size() + kChunk - 1) / kChunk;
  std::vector<Norms> partial(chunks);
  parallel_for(chunks, 4, [&](std::size_t begin, std::size_t end) {
    for (std::size_t chunk = begin; chunk < end; ++chunk) {
      const std::size_t at = chunk * kChunk;
      const std::size_t count = std::min(kChunk, values.size() - at);
      partial[chunk] = {sum_of_squares(values.data() + at, count),
                        sum_of_squares(gradients.data() + at, count)};
    }
  });
  Norms sum;
  for (const Norms& part : partial) {
    sum.values += part.values;
    sum.gradients += part.gradients;
  }
  return {std::sqrt(sum.values), std::sqrt(sum.gradients)};
}

}  // namespace convoy
