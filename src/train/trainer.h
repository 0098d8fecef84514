// The training loop of one worker: epochs of steps, an evaluation after each, and a position from
// which it can go on with the same bits. All workers of a run walk through it side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/loader.h"
#include "measure/time_ledger.h"
#include "sync/allreduce_strategy.h"
#include "sync/arrivals.h"
#include "train/balance.h"
#include "train/config.h"
#include "train/data_ledger.h"
#include "train/evaluate.h"
#include "train/interrupt.h"
#include "train/progress.h"
#include "train/pulse.h"
#include "train/recording.h"
#include "train/run_logs.h"
#include "train/worker.h"
#include "train/workers.h"

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
  Outcome outcome;           // of the epoch under way, of all workers
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
    Workers& workers;
    Model& model;
    Worker& worker;
    AllReduceStrategy* allreduce = nullptr;  // whose plan is found in the first steps; may be null
    Loader& train_loader;
    Loader& test_loader;
    TimeLedger& time;
    Recording& recording;
    RunLogs* logs = nullptr;  // the leading worker's
    double load_s = 0;        // that a simulated worker takes to load a batch
    std::size_t train_samples = 0;
    const InterruptGuard& interrupt;
    std::function<void(const RunState&)> save;               // a checkpoint; by the leading worker
    std::function<std::string(const NotFinite&)> keep_case;  // writes it down; says what to do
  };

  Trainer(const TrainConfig& config, Parts parts, RunState start, const std::string& start_name);

  // Trains until all epochs are done (true) or the user interrupts (false); saves either way.
  bool run();

  const RunState& state() const { return state_; }
  const TimeLedger& time() const { return parts_.time; }
  double images_per_s() const;  // of training steps in this process, of all workers
  std::span<const int> weights() const { return balance_.weights; }
  std::span<const double> losses() const { return losses_; }  // of this process, pulse by pulse

 private:
  bool step();       // false: the epoch has no more batches
  bool run_epoch();  // false: interrupted
  void take_share();
  std::vector<int> shards_of(int global) const;
  void post_pulse();
  void collect_pulse();
  void exchange_pulse();
  void learn(const Pulse& pulse);
  void consider_balance(const Pulse& pulse);
  void find_plan();
  std::optional<Score> evaluate_epoch();
  void finish_epoch(std::optional<Score> test);
  [[noreturn]] void fail();
  std::string describe(const NotFinite& found) const;
  DataLedger all_seen();
  void blame();
  void merge_buffers();
  void say(const std::string& line);
  void show();
  void save();

  const TrainConfig& config_;
  Parts parts_;
  ScheduleOptions schedule_;
  RunState state_;
  DataLedger data_;  // of this worker; the leading one's holds what came before this process
  Balance balance_;
  std::vector<StepCost> costs_;  // by worker
  BatchShare share_;
  PulseSource own_;  // since the last pulse
  bool interrupted_ = false;
  PulseExchange pulse_;
  int local_steps_ = 0;  // in this process
  int next_pulse_ = 1;   // of them, after which workers tell one another how they are
  int last_pulse_ = 0;
  int pulse_steps_ = 0;  // those that the pulse under way tells of
  double last_pulse_s_ = 0;
  bool planned_ = false;                // how gradients travel
  std::unique_ptr<Arrivals> arrivals_;  // null: alone
  Progress progress_;
  std::vector<double> losses_;
  std::int64_t images_ = 0;  // trained on by all workers, in this process
  double epoch_start_s_ = 0;
  std::string failure_;  // what is not finite here, and what to do about it
};

}  // namespace convoy
