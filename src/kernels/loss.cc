#include "kernels/loss.h"

#include <algorithm>
#include <cmath>

namespace convoy {

// Per sample: loss = sum over classes of target * (log_sum - logit), where target = (1 - s) *
// [class == label] + s / classes. Sums run in double and in the order of the samples, so the result
// does not depend on threads.
LossSums softmax_cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels,
                               int classes, const LossOptions& options,
                               std::span<float> gradients) {
  LossSums sums;
  const double smoothing = options.label_smoothing;
  const double even = smoothing / classes;
  const double samples =
      options.mean_over > 0 ? options.mean_over : double(std::max<std::size_t>(labels.size(), 1));
  const double share = 1.0 / samples;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    const float* z = logits.data() + n * classes;
    const int best = int(std::max_element(z, z + classes) - z);
    double sum = 0, total = 0;
    for (int c = 0; c < classes; ++c) {
      sum += std::exp(double(z[c]) - z[best]);
      total += z[c];
    }
    const double log_sum = z[best] + std::log(sum);
    sums.loss += (1 - smoothing) * (log_sum - z[labels[n]]) + even * (classes * log_sum - total);
    sums.correct += best == labels[n];
    if (gradients.empty()) continue;
    float* g = gradients.data() + n * classes;
    for (int c = 0; c < classes; ++c) {
      const double target = (c == labels[n] ? 1 - smoothing : 0.0) + even;
      g[c] = float((std::exp(z[c] - log_sum) - target) * share);
    }
  }
  return sums;
}

}  // namespace convoy
