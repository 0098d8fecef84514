#include "kernels/norm_statistics.h"

#include <algorithm>

namespace convoy {

void NormStatistics::clear() { std::fill(sums_.begin(), sums_.end(), 0.0); }

void NormStatistics::share_moments(double count) {
  sums_.back() = count;
  if (exchange_) exchange_->sum(sums_);
  count_ = sums_.back();
}

// The sums are doubles of numbers with 24 bits or fewer: what the difference of two large ones
// loses is less than what the numbers themselves have lost.
double NormStatistics::variance(int channel) const {
  const double mean_here = mean(channel);
  return std::max(0.0, second(channel) / count_ - mean_here * mean_here);
}

void NormStatistics::update_running(float momentum, float* running_mean,
                                    float* running_variance) const {
  if (count_ == 0) return;
  for (int c = 0; c < channels_; ++c) {
    const double biased = variance(c);
    const double unbiased = count_ > 1 ? biased * count_ / (count_ - 1) : biased;
    running_mean[c] += momentum * (float(mean(c)) - running_mean[c]);
    running_variance[c] += momentum * (float(unbiased) - running_variance[c]);
  }
}

void NormStatistics::share_gradients() {
  if (exchange_) exchange_->sum(std::span(sums_).first(2 * std::size_t(channels_)));
}

}  // namespace convoy
