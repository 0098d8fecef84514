// What workers tell one another every half second or so, besides gradients: how far they are, how
// fast, whether the user wants to stop, whether something went wrong. All learn the same, at the
// same step, and so decide the same.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/model.h"
#include "train/workers.h"

namespace convoy {

// Of one worker, since the last pulse. The loss is counted in units of 2^-24, step by step: sums of
// whole numbers do not depend on who adds when.
struct PulseSource {
  std::int64_t loss = 0;
  std::int64_t correct = 0;
  std::int64_t samples = 0;
  double compute_s = 0;
  double step_s = 0;  // on average
  bool stop = false;
  bool failed = false;

  void add(const Outcome& outcome);
};

// Of all.
struct Pulse {
  double loss_sum = 0;
  int correct = 0;
  int samples = 0;
  double step_s = 0;  // the mean
  bool stop = false;
  int failed = -1;  // the first worker that cannot go on; -1: none
  struct Work {
    double samples = 0;
    double seconds = 0;  // of its own computation
  };
  std::vector<Work> work;  // by worker
};

// Carries pulses: one at a time is under way, behind the gradients that were sent before it, while
// the worker computes. All workers make the same calls.
class PulseExchange {
 public:
  explicit PulseExchange(Workers& workers) : workers_(workers) {}  // which outlive it
  ~PulseExchange();
  PulseExchange(const PulseExchange&) = delete;
  PulseExchange& operator=(const PulseExchange&) = delete;

  bool under_way() const { return job_ != 0; }
  void post(const PulseSource& own);  // never blocks
  Pulse collect();                    // waits for it

 private:
  Workers& workers_;
  std::vector<std::int64_t> sums_;
  std::uint64_t job_ = 0;
};

// The sum of all workers' losses in an evaluation; no number where one of them is none.
double sum_losses(Workers& workers, double own);

}  // namespace convoy
