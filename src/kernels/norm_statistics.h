// The statistics of one batch norm in training: over the samples of this worker or, by an exchange,
// over those of all workers. The exchange is called once in forward and once in backward.
#pragma once

#include <vector>

#include "kernels/statistics_exchange.h"

namespace convoy {

class NormStatistics {
 public:
  // Null: of this worker alone. The exchange outlives this.
  NormStatistics(StatisticsExchange* exchange, int channels)
      : exchange_(exchange), channels_(channels), sums_(2 * std::size_t(channels) + 1) {}

  // Two sums of a channel over this worker's samples, before they are shared; and over all samples,
  // after. In forward of x and of x * x, in backward of the gradient and of the gradient times
  // normalised x. A worker without samples sets none, and has contributed zeros.
  void set(int channel, double first, double second) {
    sums_[channel] = first;
    sums_[channels_ + channel] = second;
  }
  double first(int channel) const { return sums_[channel]; }
  double second(int channel) const { return sums_[channels_ + channel]; }
  void clear();

  // Forward: `count` is how many numbers each channel has here. Afterwards count() is that of all.
  void share_moments(double count);
  double count() const { return count_; }
  double mean(int channel) const { return first(channel) / count_; }
  double variance(int channel) const;  // the biased one
  // running = (1 - momentum) * running + momentum * batch, where the running variance is the
  // unbiased one, as in PyTorch. Nothing where nobody had a sample.
  void update_running(float momentum, float* mean, float* variance) const;

  // Backward, of the same samples as the last forward.
  void share_gradients();

 private:
  StatisticsExchange* exchange_;
  int channels_;
  std::vector<double> sums_;  // [channels] first, [channels] second, count
  double count_ = 0;
};

}  // namespace convoy
