// Batch norm's statistics over the samples of all workers.
#pragma once

#include <vector>

#include "kernels/statistics_exchange.h"
#include "train/workers.h"

namespace convoy {

// The sums of all workers are added in the order of their ranks, so that all get the same bits.
class WorkerStatistics final : public StatisticsExchange {
 public:
  explicit WorkerStatistics(Workers& workers) : workers_(workers) {}
  void sum(std::span<double> values) override;

 private:
  Workers& workers_;
  std::vector<double> all_;
};

}  // namespace convoy
