#include "train/pulse.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace convoy {
namespace {

constexpr double kLossUnit = 1.0 / (1 << 24);
constexpr double kMostUnits =
    double(std::int64_t{1} << 48);  // of a step: sums of many stay in range
constexpr double kNanosecond = 1e-9;
enum Slot { kLoss, kCorrect, kSamples, kStop, kStepTime, kPerWorker };
enum WorkerSlot { kFailed, kOwnSamples, kOwnTime, kWorkerSlots };

}  // namespace

void PulseSource::add(const Outcome& outcome) {
  loss += std::llround(std::min(outcome.loss_sum / kLossUnit, kMostUnits));
  correct += outcome.correct;
  samples += outcome.samples;
}

// Only left under way by a failure, after which nothing more is carried out.
PulseExchange::~PulseExchange() {
  try {
    if (under_way()) workers_.comm().wait(job_);
  } catch (...) {  // it was reported where it came up
  }
}

void PulseExchange::post(const PulseSource& own) {
  CHECK(!under_way(), "a pulse while another is under way");
  sums_.assign(kPerWorker + kWorkerSlots * std::size_t(workers_.size()), 0);
  sums_[kLoss] = own.loss;
  sums_[kCorrect] = own.correct;
  sums_[kSamples] = own.samples;
  sums_[kStop] = own.stop;
  sums_[kStepTime] = std::llround(own.step_s / kNanosecond);
  std::int64_t* mine = &sums_[kPerWorker + kWorkerSlots * std::size_t(workers_.rank())];
  mine[kFailed] = own.failed;
  mine[kOwnSamples] = own.samples;
  mine[kOwnTime] = std::llround(own.compute_s / kNanosecond);
  job_ = workers_.comm().post([this](Communicator& all) { all.all_reduce(std::span(sums_)); });
}

Pulse PulseExchange::collect() {
  workers_.comm().wait(std::exchange(job_, 0));
  Pulse pulse{.loss_sum = double(sums_[kLoss]) * kLossUnit,
              .correct = int(sums_[kCorrect]),
              .samples = int(sums_[kSamples]),
              .step_s = double(sums_[kStepTime]) * kNanosecond / workers_.size(),
              .stop = sums_[kStop] > 0,
              .failed = -1,
              .work = {}};
  for (int worker = 0; worker < workers_.size(); ++worker) {
    const std::int64_t* told = &sums_[kPerWorker + kWorkerSlots * std::size_t(worker)];
    if (told[kFailed] > 0 && pulse.failed < 0) pulse.failed = worker;
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
