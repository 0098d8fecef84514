// The learning rate as a function of progress.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy {

struct ScheduleOptions {
  std::string kind = "constant";     // constant, step, cosine, one-cycle
  double rate = 0.01;                // peak rate, after scaling with the batch
  double warmup_epochs = 0;          // linear from rate/steps to rate
  std::vector<double> milestones;    // step: epochs after which the rate is multiplied by gamma
  double gamma = 0.1;
  double final_rate = 0;             // cosine, one-cycle: at the end
  double peak_at = 0.3;              // one-cycle: share of training at which the rate peaks
};

// Rate for step `step` (from 0) of `steps_per_epoch * epochs` in all.
double learning_rate(const ScheduleOptions& options, std::int64_t step, std::int64_t steps_per_epoch, int epochs);

}  // namespace convoy
