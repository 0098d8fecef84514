// What a worker notes of a run: its time ledger's rows, its steps, for whom it waited, and what
// happened in some steps in detail. Where a store is written, everything goes there; the ledger is
// kept in any case.
//
// For whom a worker waited is found afterwards: the worker that posted a collective last is the one
// that all others waited for. Each worker notes when it posted which; at every pulse the latest
// time of all of them is found by an all-reduce of its own, which nobody waits for.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "measure/counted_transport.h"
#include "measure/store_writer.h"
#include "measure/time_ledger.h"
#include "measure/verdict.h"
#include "sync/arrivals.h"
#include "train/workers.h"

namespace convoy {

// What a step leaves besides its times.
struct StepFacts {
  std::int64_t step = 0;
  int samples = 0, correct = 0;
  double loss_sum = 0;
  double learning_rate = 0;
  std::int64_t staleness = -1;  // -1: none
};

struct RecordingOptions {
  CountedTransport* traffic = nullptr;  // what this worker's messages pass through
  double base_s = 0;                    // of earlier sessions
  double start_s = 0;                   // of the run, by worker 0's clock
  std::set<int> far = {};          // workers that cannot write: the leading one does it for them
  bool detailed = false;           // more steps than usual in detail
  bool samples_resources = false;  // of this process, by this rank
};

class Recording final : public CommObserver {
 public:
  // All outlive it; `writer` is null where nothing is written, or where the leading worker does it.
  Recording(Workers& workers, TimeLedger& time, StoreWriter* writer, RecordingOptions options);
  ~Recording() override;

  bool recorded() const { return writer_ || far(); }
  // What is to be added to the own clock to get worker 0's.
  void set_clock(const ClockOffset& offset) {
    clock_offset_s_ = offset.offset_s;
    clock_uncertainty_s_ = offset.uncertainty_s;
  }
  double at_s() const { return run_time_s(time_.last_s()); }  // of the run

  // Around a step, loading included; what follows until the next belongs to it.
  void begin_step(std::int64_t step);
  void end_step(const StepFacts& facts);
  void drop_step() {  // it had no batch
    step_.reset();
    computing_ = false;
  }
  // What is waited for now is needed by this layer; kNoNode: by none.
  void wait_for(NodeId node) { waiting_node_ = node; }
  void wait_over() { waiting_node_ = kNotWaiting; }

  // All workers, at the same step: finds out who was waited for, and brings far workers' records to
  // the leading one. Does not block.
  void exchange();
  // The same at the end of a run: returns when all that any worker noted is in the store.
  void finish();
  // Returns when what was handed over is in the store. False where that failed.
  bool flush() { return !writer_ || writer_->flush(); }
  // The end of a run that fails: writes what this worker has noted, without the others.
  void abandon();

  void start_epoch(int epoch);
  // Rows that only the leading worker writes; nothing happens without a store, or elsewhere.
  void event(const std::string& kind, const std::string& text);
  void change(std::function<void(Database&, std::int64_t run)> change);
  void add(Records&& records);  // of this worker, noted by others

  // After finish(): what each rank's time went to, in the order of ranks. All workers call it.
  std::vector<RankTotals> all_totals();
  // Seconds that this worker's task has spent on its ledger and records so far, and its process's
  // writer beside it.
  double own_cost_s() const;

  void carried_out(const CommJob& job) override;
  void waited(std::uint64_t number, double begin_s, double end_s) override;

 private:
  static constexpr NodeId kNotWaiting = -2;
  struct Wait {
    std::uint64_t number;
    std::int64_t step;
    int epoch;
    NodeId node;
    double begin_s, end_s;
  };
  struct Settled {  // of jobs in the order of their numbers
    std::vector<std::uint64_t> numbers;
    std::vector<std::int64_t> latest;
  };

  bool far() const { return options_.far.contains(workers_.rank()); }
  double run_time_s(double clock_s) const {
    return clock_s + clock_offset_s_ - options_.start_s + options_.base_s;
  }
  std::int64_t run_time_ns(double clock_s) const { return std::int64_t(1e9 * run_time_s(clock_s)); }
  bool is_sampled(std::int64_t step) const;
  void close_step();
  void keep_spans();
  void collect();
  void attribute(const Wait& wait, std::int64_t latest);
  StepRecord* recent(std::int64_t step);
  void release_steps(bool all);
  void hand_over(bool all);
  void sample();
  void settle(Communicator& communicator);
  void deliver(Communicator& communicator);

  Workers& workers_;
  TimeLedger& time_;
  StoreWriter* writer_;
  const RecordingOptions options_;
  std::atomic<double> clock_offset_s_{0};
  double clock_uncertainty_s_ = 0;

  // The step under way.
  std::optional<StepRecord> step_;
  std::array<std::int64_t, kPhases> before_ns_{};
  std::int64_t steps_ = 0;  // since layers were taken
  std::vector<TimeLedger::Charge> charges_;
  std::size_t spans_ = 0;  // so far
  NodeId waiting_node_ = kNotWaiting;
  bool computing_ = false;  // within a step

  std::deque<StepRecord> recent_;  // whose waits are not settled yet
  std::size_t provisional_ = 0;    // of them, handed over as they are
  std::deque<Wait> waits_;         // not settled yet
  std::map<std::tuple<int, int, NodeId>, WaitRecord> settled_waits_;  // since handed over
  std::map<int, double> waited_for_;
  Records out_;
  double cost_s_ = 0;         // of its own functions
  double charge_cost_s_ = 0;  // of one charge
  double sampled_s_ = 0;      // when resources and traffic were sampled last
  double handed_over_s_ = 0;
  std::int64_t events_ = 0;

  std::mutex mutex_;  // guards what follows, which the communicating task uses too
  std::vector<CommJob> jobs_;
  std::vector<Settled> settled_;
  std::vector<SpanRecord> job_spans_;
  Records outgoing_;               // of a far worker
  std::int64_t sampled_step_ = 0;  // 0: none
};

}  // namespace convoy
