// The run store: one SQLite file (WAL) with everything that runs recorded. docs/store.md has every
// table and column; schema.cc makes them. Any number of processes may read while others write.
//
// For single tables, ask database().prepare() with SQL: the schema is documented and versioned so
// that readers can rely on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "measure/sqlite.h"

namespace convoy {

inline constexpr int kStoreVersion = 1;
inline constexpr const char* kDefaultStore = "runs/convoy.db";

// A row of `runs`.
struct RunRow {
  std::int64_t id = 0;
  std::string name;   // unique, for people: mnist_cnn-mnist-20260131-235959
  std::string state;  // running, finished, interrupted, failed; lost: see run_state()
  double started_unix_s = 0;
  std::optional<double> ended_unix_s = std::nullopt;
  double written_unix_s = 0;  // when anything was last recorded
  std::string folder;
  std::string host;
  std::int64_t pid = 0;
  std::string model, data, precision, sync, algorithm, wire, transport, world;
  std::int64_t batch = 0, epochs = 0, seed = 0, workers = 0, servers = 0, threads = 0;
  std::int64_t parameters = 0;  // of the network
  std::int64_t train_samples = 0;
  int sessions = 1;  // 1, and one more for each time it was resumed
  // Of what was recorded so far:
  std::int64_t steps = 0;
  double wall_s = 0;
  std::optional<double> images_per_s = std::nullopt;
  std::optional<double> train_loss = std::nullopt;
  std::optional<double> test_loss = std::nullopt;
  std::optional<double> test_accuracy = std::nullopt;
  std::string verdict;           // one sentence; empty before the end
  std::string error;             // why it failed
  nlohmann::json configuration;  // all of `convoy train`'s settings
  nlohmann::json environment;    // commit, compiler, libraries, CPU
  nlohmann::json result;         // the answer of train --json; null before the end
};

// What `convoy runs` lists: each field that is set must match.
struct RunFilter {
  std::string name = {};   // part of it
  std::string model = {};  // whole
  std::string data = {};
  std::string state = {};
  std::string sync = {};
  std::optional<std::int64_t> workers = std::nullopt;
  std::optional<double> since_unix_s = std::nullopt;
  std::int64_t limit = 0;  // the newest so many; 0: all
};

class Store {
 public:
  // Checks and, unless for reading, migrates. Throws DataError: no file (read, write), not a run
  // store, written by a newer convoy, read-only (write, create), StoreBusy.
  Store(const std::filesystem::path& path, Access access);

  Database& database() { return database_; }

  // Newest first. Without configuration, environment and result, which are null.
  std::vector<RunRow> list(const RunFilter& filter = {});
  // By number, by name, or by the beginning of a name that only one run has; "latest" is the newest
  // run. Throws ConfigError that says which names come near.
  RunRow find(const std::string& id_or_name);
  // With all its rows in all tables. Needs write access.
  void remove(std::int64_t run);
  // All rows of a table that belong to a run, as objects by column.
  nlohmann::json rows(const std::string& table, std::int64_t run);

 private:
  Database database_;
};

// The names of the tables that have rows of runs, `runs` first.
const std::vector<std::string>& store_tables();

// `lost` for a run that the store has as running but whose process is gone (on this host), or that
// recorded nothing for a minute (elsewhere); else what the store says.
std::string run_state(const RunRow& run);

}  // namespace convoy
