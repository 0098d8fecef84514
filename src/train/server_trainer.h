// The training loop of a worker that has servers: it does what the coordinator hands out. Workers
// need not be in step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "measure/time_ledger.h"
#include "sync/ps/client.h"
#include "sync/ps/strategy.h"
#include "train/config.h"
#include "train/evaluate.h"
#include "train/interrupt.h"
#include "train/progress.h"
#include "train/trainer.h"
#include "train/worker.h"

namespace convoy {

class ServerTrainer {
 public:
  // All outlive the trainer.
  struct Parts {
    const ServerJob& job;
    int rank = 0;
    Model& model;
    Worker& worker;
    ServerStrategy& strategy;
    ServerClient& client;
    Loader& train_loader;
    Loader& test_loader;
    TimeLedger& time;
    Recording& recording;
    const InterruptGuard& interrupt;
    Optimizer& optimizer;  // whose state is that of the servers when a checkpoint is written
    std::function<void(const RunState&)> save;               // by the leading worker
    std::function<std::string(const NotFinite&)> keep_case;  // writes it down; says what to do
  };
  ServerTrainer(const TrainConfig& config, Parts parts, RunState start);

  // Trains until all epochs are done (true) or the user interrupts (false); saves either way.
  bool run();

  RunView view() const;
  // Of all workers, as the leading one last heard of them; after run().
  std::vector<RankTotals> totals() const;

 private:
  void train(const Answer& lease);
  void evaluate(const Answer& lease);
  EvaluateOptions evaluation() const;
  void rest(const Answer& answer);
  void take_buffers(const Answer& answer);
  void finish_epoch(const Answer& answer);
  void save_partial(const Answer& answer);
  void save();
  void learn(const EpochSums& sums);
  void gather_statistics();
  void show(const Answer& answer);
  void say(const std::string& line);
  BatchShare share_of_part(std::uint32_t part) const;
  std::string describe(const NotFinite& found, const Answer& lease) const;
  double images_per_s() const;
  bool leads() const { return parts_.rank == 0; }

  const TrainConfig& config_;
  Parts parts_;
  RunState state_;
  const Outcome before_;  // of the epoch that the run goes on with
  const std::int64_t first_updates_;
  std::vector<float> buffers_;     // running statistics, one after the other
  Ask result_;                     // of the last lease, still to be told
  std::int64_t images_ = 0;        // of all workers, in epochs that ended here
  std::int64_t epoch_images_ = 0;  // in the present one
  double epoch_start_s_ = 0;
  Progress progress_;
  nlohmann::json statistics_ = nlohmann::json::object();
  std::int64_t steps_ = 0;  // of this worker, in this process
};

}  // namespace convoy
