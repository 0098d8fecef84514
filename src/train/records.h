// What a run leaves behind for people and programs: run.json and the tables of the terminal.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/config.h"
#include "train/trainer.h"

namespace convoy {

nlohmann::json history_json(const std::vector<EpochRecord>& history);

std::string host_name();

// Where the run is recorded; "none": nowhere.
std::string store_path(const TrainConfig& config);

// The program (commit, compiler, libraries) and the machine (host, CPU, threads).
nlohmann::json environment_json(int threads);

// Seconds by phase.
nlohmann::json phases_json(const TimeLedger& time);

// Writes FOLDER/run.json atomically. `state` is running, finished or interrupted.
void write_run_record(const std::filesystem::path& folder, const TrainConfig& config, int threads,
                      const std::string& state, const nlohmann::json& result);

// Rows of two columns, aligned: the summary at the end of a run.
std::string summary_table(const std::vector<std::pair<std::string, std::string>>& rows);

// A folder for a run that has no --out: made now, and nobody else's.
// "runs/mnist_cnn-mnist-20260131-235959".
std::filesystem::path claim_run_folder(const TrainConfig& config);

}  // namespace convoy
