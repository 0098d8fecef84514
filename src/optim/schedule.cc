#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/nearest.h"

namespace convoy {
namespace {

// Half a cosine wave from `from` (progress 0) to `to` (progress 1), exact at both ends.
double cosine_between(double from, double to, double progress) {
  if (progress <= 0) return from;
  if (progress >= 1) return to;
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

// Progress of `step` from `begin` (0) to `end` (1). An empty stretch has been left behind once it
// is reached.
double share(std::int64_t step, std::int64_t begin, std::int64_t end) {
  if (end <= begin) return step > begin ? 1 : 0;
  return double(step - begin) / double(end - begin);
}

double step_rate(const ScheduleOptions& options, std::int64_t step, std::int64_t steps_per_epoch) {
  double rate = options.rate;
  for (double milestone : options.milestones)
    if (double(step) >= milestone * double(steps_per_epoch)) rate *= options.gamma;
  return rate;
}

double line_between(double from, double to, double progress) {
  return from + (to - from) * std::clamp(progress, 0.0, 1.0);
}

// Up to the peak and down again, along cosines or straight lines.
double one_cycle_rate(const ScheduleOptions& options, std::int64_t step, std::int64_t begin,
                      std::int64_t last) {
  const auto between = options.kind == "triangle" ? line_between : cosine_between;
  const auto peak =
      std::clamp<std::int64_t>(std::llround(options.peak_at * double(last)), begin, last);
  if (step <= peak && peak > begin)
    return between(options.rate / kOneCycleStart, options.rate, share(step, begin, peak));
  return between(options.rate, options.final_rate, share(step, peak, last));
}

// The schedule without its warm-up, over the steps `begin` to `last`.
double scheduled_rate(const ScheduleOptions& options, std::int64_t step, std::int64_t begin,
                      std::int64_t last, std::int64_t steps_per_epoch) {
  if (options.kind == "step") return step_rate(options, step, steps_per_epoch);
  if (options.kind == "cosine")
    return cosine_between(options.rate, options.final_rate, share(step, begin, last));
  if (options.kind == "one-cycle" || options.kind == "triangle")
    return one_cycle_rate(options, step, begin, last);
  return options.rate;
}

void check_number(const char* field, double value, bool fits, const char* range) {
  if (!fits || !std::isfinite(value))
    throw ConfigError("{}: {} is not possible; give a number {}", field, value, range);
}

}  // namespace

const std::vector<std::string>& schedule_kinds() {
  static const std::vector<std::string> kinds = {"constant", "step", "cosine", "one-cycle",
                                                 "triangle"};
  return kinds;
}

void check_schedule(const ScheduleOptions& options) {
  const auto& kinds = schedule_kinds();
  if (std::find(kinds.begin(), kinds.end(), options.kind) == kinds.end())
    throw ConfigError(
        "schedule: there is no '{}'; did you mean '{}'? (constant, step, cosine, one-cycle or "
        "triangle)",
        options.kind, nearest(options.kind, kinds));
  check_number("learning rate", options.rate, options.rate > 0, "above 0");
  check_number("warm-up epochs", options.warmup_epochs, options.warmup_epochs >= 0, "of 0 or more");
  check_number("gamma", options.gamma, options.gamma > 0, "above 0");
  check_number("final rate", options.final_rate, options.final_rate >= 0, "of 0 or more");
  check_number("peak share", options.peak_at, options.peak_at > 0 && options.peak_at < 1,
               "between 0 and 1");
  for (double milestone : options.milestones)
    check_number("milestone", milestone, milestone > 0, "of epochs above 0");
  if (options.kind == "step" && options.milestones.empty())
    throw ConfigError("schedule: 'step' needs the epochs at which the rate falls (milestones)");
}

double learning_rate(const ScheduleOptions& options, std::int64_t step,
                     std::int64_t steps_per_epoch, int epochs) {
  const std::int64_t last = std::max<std::int64_t>(steps_per_epoch * epochs - 1, 0);
  step = std::clamp<std::int64_t>(step, 0, last);
  const auto warmup = std::int64_t(std::llround(options.warmup_epochs * double(steps_per_epoch)));
  const std::int64_t begin = std::max<std::int64_t>(warmup - 1, 0);
  if (step >= begin) return scheduled_rate(options, step, begin, last, steps_per_epoch);
  // To where the schedule goes on from; a warm-up longer than the training does not get there.
  const double goal = scheduled_rate(options, begin, begin, std::max(begin, last), steps_per_epoch);
  return goal * double(step + 1) / double(warmup);
}

double scaled_rate(double rate, int batch, int base_batch) {
  if (batch < 1 || base_batch < 1)
    throw ConfigError(
        "learning rate: cannot scale from a batch of {} to one of {}; both must be at least 1",
        base_batch, batch);
  return rate * double(batch) / double(base_batch);
}

}  // namespace convoy
