// A run as the store has it: how it is entered, and the rows that only the leading worker writes.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "train/recording.h"
#include "train/setup.h"

namespace convoy {

// All workers call it: enters the run, or goes on with it, and tells all where. `writer` is this
// process's; null: nothing is recorded. Throws DataError where the store cannot be written.
struct RunEntry {
  std::string name;  // of the run in the store; empty: it is in none
  std::unique_ptr<Recording> recording;
  std::unique_ptr<RunLogs> logs;  // the leading worker's
};
RunEntry enter_run(RunParts& parts, TimeLedger& time, CountedTransport& traffic,
                   StoreWriter* writer, bool resumed);

// What --trace asks for, once the run is in the store.
void write_trace(const TrainConfig& config, const std::string& run);

struct RunProgress {
  std::int64_t steps = 0;
  double wall_s = 0;
  double images_per_s = 0;
  double train_loss = 0;
};
void record_progress(Recording& recording, const RunProgress& progress);
void record_epoch(Recording& recording, const EpochRecord& record, std::int64_t steps,
                  double images_per_s);
void record_arrivals(Recording& recording, int epoch, const std::vector<Blame>& blames);
// Histograms of all workers' gradients by epoch: how many were so many updates behind.
void record_staleness(Recording& recording, const nlohmann::json& histograms);
void record_clocks(Recording& recording, const std::vector<RankTotals>& ranks);
// `result` is null for a run that failed, for the reason `error`.
void record_end(Recording& recording, const std::string& state, const nlohmann::json& result,
                const std::string& verdict, const std::string& error);

}  // namespace convoy
