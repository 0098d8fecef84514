// The training loop: epochs of steps, an evaluation after each, and a position from which it can go
// on with the same bits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/loader.h"
#include "nn/model.h"
#include "optim/optimizer.h"
#include "train/config.h"
#include "train/data_ledger.h"
#include "train/evaluate.h"
#include "train/interrupt.h"
#include "train/progress.h"
#include "train/time_ledger.h"

namespace convoy {

struct EpochRecord {
  int epoch = 0;  // from 1
  double train_loss = 0;
  double train_accuracy = 0;
  std::optional<Score> test;  // where the epoch was evaluated
  DataCount data;
  double seconds = 0;
};

// Where a run stands, between two steps. With the weights and the optimizer's state it is all that
// a run needs to go on.
struct RunState {
  int epochs = 0;            // finished, evaluation included
  int steps = 0;             // of the epoch under way
  std::int64_t updates = 0;  // in all
  Outcome outcome;           // of the epoch under way
  std::string seen;          // DataLedger::save() of the epoch under way; empty between epochs
  std::vector<EpochRecord> history;

  std::string to_text() const;
  // Throws DataError that begins with `where`.
  static RunState from_text(const std::string& text, const std::string& where);
};

// The loss is no longer a number: going on is useless.
class Diverged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Trainer {
 public:
  // All outlive the trainer.
  struct Parts {
    Model& model;
    Optimizer& optimizer;
    Loader& train_loader;
    Loader& test_loader;
    std::size_t train_samples = 0;
    const InterruptGuard& interrupt;
    std::function<void(const RunState&)> save;  // a checkpoint
  };

  Trainer(const TrainConfig& config, Parts parts, RunState start, const std::string& start_name);

  // Trains until all epochs are done (true) or the user interrupts (false); saves either way.
  bool run();

  const RunState& state() const { return state_; }
  const TimeLedger& time() const { return time_; }
  double images_per_s() const;  // of training steps in this process

 private:
  bool step();       // false: the epoch has no more batches
  bool run_epoch();  // false: interrupted
  void finish_epoch(std::optional<Score> test);
  void check_loss(double loss, const std::string& where) const;
  void show();
  void save();

  const TrainConfig& config_;
  Parts parts_;
  ScheduleOptions schedule_;
  RunState state_;
  DataLedger data_;
  TimeLedger time_;
  Progress progress_;
  std::int64_t images_ = 0;  // trained on by this process
  double epoch_start_s_ = 0;
};

}  // namespace convoy
