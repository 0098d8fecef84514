#include "train/pulse.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace convoy {
namespace {

constexpr double kLossUnit = 1.0 / (1 << 24);
constexpr double kNanosecond = 1e-9;
enum Slot { kLoss, kCorrect, kSamples, kStop, kStepTime, kPerWorker };
enum WorkerSlot { kFailed, kOwnSamples, kOwnTime, kWorkerSlots };

}  // namespace

void PulseSource::add(const Outcome& outcome) {
  loss += std::llround(outcome.loss_sum / kLossUnit);
  correct += outcome.correct;
  samples += outcome.samples;
}

Pulse exchange(Workers& workers, const PulseSource& own) {
  const std::size_t size = std::size_t(workers.size());
  std::vector<std::int64_t> sums(kPerWorker + kWorkerSlots * size, 0);
  sums[kLoss] = own.loss;
  sums[kCorrect] = own.correct;
  sums[kSamples] = own.samples;
  sums[kStop] = own.stop;
  sums[kStepTime] = std::llround(own.step_s / kNanosecond);
  const auto slots = [&](std::size_t worker) { return &sums[kPerWorker + kWorkerSlots * worker]; };
  std::int64_t* mine = slots(std::size_t(workers.rank()));
  mine[kFailed] = own.failed;
  mine[kOwnSamples] = own.samples;
  mine[kOwnTime] = std::llround(own.compute_s / kNanosecond);
  workers.sum(sums);

  Pulse pulse{.loss_sum = double(sums[kLoss]) * kLossUnit,
              .correct = int(sums[kCorrect]),
              .samples = int(sums[kSamples]),
              .step_s = double(sums[kStepTime]) * kNanosecond / double(size),
              .stop = sums[kStop] > 0,
              .failed = -1,
              .work = {}};
  for (std::size_t worker = 0; worker < size; ++worker) {
    const std::int64_t* told = slots(worker);
    if (told[kFailed] > 0 && pulse.failed < 0) pulse.failed = int(worker);
    pulse.work.push_back({double(told[kOwnSamples]), double(told[kOwnTime]) * kNanosecond});
  }
  return pulse;
}

double sum_losses(Workers& workers, double own) {
  const bool finite = std::isfinite(own);
  std::array<std::int64_t, 2> sums = {finite ? std::llround(own / kLossUnit) : 0, !finite};
  workers.sum(sums);
  return sums[1] > 0 ? std::numeric_limits<double>::quiet_NaN() : double(sums[0]) * kLossUnit;
}

}  // namespace convoy
