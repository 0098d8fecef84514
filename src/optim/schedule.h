// The learning rate as a function of progress.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy {

struct ScheduleOptions {
  std::string kind = "constant";  // constant, step, cosine, one-cycle, triangle
  double rate = 0.01;             // peak rate, after scaling with the batch
  double warmup_epochs =
      0;  // linear from rate/steps to rate (one-cycle, triangle: to the rate it starts from)
  std::vector<double> milestones = {};  // step: epochs after which the rate is multiplied by gamma
  double gamma = 0.1;
  double final_rate = 0;  // cosine, one-cycle, triangle: at the last step
  double peak_at = 0.3;   // one-cycle, triangle: share of training at which the rate peaks
};

// One-cycle and triangle start at the peak rate divided by this, as PyTorch's one-cycle does.
inline constexpr double kOneCycleStart = 25;

// All kinds, for help texts.
const std::vector<std::string>& schedule_kinds();

// Throws ConfigError for an unknown kind (naming the nearest) and for numbers out of range.
void check_schedule(const ScheduleOptions& options);

// Rate for step `step` (from 0) of `steps_per_epoch * epochs` in all; beyond the last step the rate
// of the last. The last step of the warm-up has the full rate, and the schedule goes on from there.
// Options have passed check_schedule.
double learning_rate(const ScheduleOptions& options, std::int64_t step,
                     std::int64_t steps_per_epoch, int epochs);

// The linear scaling rule (Goyal et al. 2017): `rate` was chosen for batches of `base_batch`; this
// is the one for `batch`.
double scaled_rate(double rate, int batch, int base_batch);

}  // namespace convoy
