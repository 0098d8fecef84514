// Everything that a worker of a run is made of, made in an order in which nothing is written before
// data and network are checked, and in which all workers end up with the same configuration,
// weights and position.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/file.h"
#include "data/open.h"
#include "optim/optimizer.h"
#include "sync/allreduce_strategy.h"
#include "sync/invariant_strategy.h"
#include "sync/shard_store.h"
#include "train/pace.h"
#include "train/run.h"
#include "train/statistics.h"
#include "train/trainer.h"

namespace convoy {

struct RunParts {
  TrainConfig config;
  std::unique_ptr<Workers> workers;
  std::shared_ptr<const DataSplit> data;
  double read_s = 0;                             // to open them
  std::unique_ptr<WorkerStatistics> statistics;  // of batch norm, where all workers share them
  std::unique_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Loader> train_loader;
  std::unique_ptr<Loader> test_loader;
  RunState state;
  std::string start_name;  // of the checkpoint it goes on from; the leading worker's
  std::filesystem::path folder;
  std::string transport;  // what carries messages
  FolderLock lock;        // on the folder

  // How the workers come to the same weights; one of these is the strategy.
  std::unique_ptr<WireFormat> wire;
  std::unique_ptr<SyncStrategy> strategy;
  bool shares_weights = false;             // with all other workers
  AllReduceStrategy* allreduce = nullptr;  // where it is that
  std::unique_ptr<ShardStore> shards;      // of invariant mode
  std::vector<Bucket> buckets;
  std::unique_ptr<Pace> pace;
};

// What depends on the number of workers, besides check_config(). Throws ConfigError.
void check_workers(const TrainConfig& config);

// The configuration that counts, worker 0's, and what it goes on from. All ranks call it, servers
// included.
struct ResolvedConfig {
  TrainConfig config;
  std::filesystem::path checkpoint;  // worker 0's; empty: a new run
};
ResolvedConfig resolve_config(const TrainRequest& request, World world);

// Throws ConfigError and DataError. All workers call it, with a world of workers. Where there are
// servers, the strategy is left to be made.
RunParts make_parts(const TrainRequest& request, const ResolvedConfig& resolved, World world,
                    std::FILE* human);

// The leading worker's: makes the folder, which must not hold another run, nor be written by one.
void prepare_folder(RunParts& parts, bool resumed);

// Writes a checkpoint.
void save(const RunParts& parts, const RunState& state);

}  // namespace convoy
