#include "measure/schema.h"

#include <array>

#include "measure/store.h"

namespace convoy {
namespace {

constexpr std::int64_t kApplicationId = 0x436e7679;  // "Cnvy"

// Step i makes version i + 1 from version i. What was released is never changed: add a step.
constexpr std::array<const char*, kStoreVersion> kSteps = {R"(
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL,
  started_unix_s REAL NOT NULL,
  ended_unix_s REAL,
  written_unix_s REAL NOT NULL,
  folder TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  model TEXT NOT NULL,
  data TEXT NOT NULL,
  precision TEXT NOT NULL,
  sync TEXT NOT NULL,
  algorithm TEXT NOT NULL,
  wire TEXT NOT NULL,
  transport TEXT NOT NULL,
  world TEXT NOT NULL,
  batch INTEGER NOT NULL,
  epochs INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  workers INTEGER NOT NULL,
  servers INTEGER NOT NULL,
  threads INTEGER NOT NULL,
  parameters INTEGER NOT NULL,
  train_samples INTEGER NOT NULL,
  sessions INTEGER NOT NULL DEFAULT 1,
  steps INTEGER NOT NULL DEFAULT 0,
  wall_s REAL NOT NULL DEFAULT 0,
  images_per_s REAL,
  train_loss REAL,
  test_loss REAL,
  test_accuracy REAL,
  verdict TEXT NOT NULL DEFAULT '',
  error TEXT NOT NULL DEFAULT '',
  configuration TEXT NOT NULL,
  environment TEXT NOT NULL,
  result TEXT
) STRICT;
CREATE INDEX runs_by_time ON runs (started_unix_s);

CREATE TABLE ranks (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  role TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  threads INTEGER NOT NULL,
  wall_s REAL NOT NULL DEFAULT 0,
  clock_offset_s REAL NOT NULL DEFAULT 0,
  clock_uncertainty_s REAL NOT NULL DEFAULT 0,
  PRIMARY KEY (run, rank)
) STRICT, WITHOUT ROWID;

CREATE TABLE epochs (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  epoch INTEGER NOT NULL,
  end_s REAL NOT NULL,
  seconds REAL NOT NULL,
  steps INTEGER NOT NULL,
  images_per_s REAL,
  train_loss REAL,
  train_accuracy REAL,
  test_loss REAL,
  test_accuracy REAL,
  test_accuracy_flip REAL,
  test_samples INTEGER,
  seen INTEGER NOT NULL,
  missing INTEGER NOT NULL,
  twice INTEGER NOT NULL,
  PRIMARY KEY (run, epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE steps (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  step INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  begin_ns INTEGER NOT NULL,
  load_ns INTEGER NOT NULL,
  forward_ns INTEGER NOT NULL,
  backward_ns INTEGER NOT NULL,
  communication_ns INTEGER NOT NULL,
  wait_ns INTEGER NOT NULL,
  update_ns INTEGER NOT NULL,
  other_ns INTEGER NOT NULL,
  wait_rank INTEGER,
  wait_node INTEGER,
  wait_operation INTEGER,
  samples INTEGER NOT NULL,
  correct INTEGER NOT NULL,
  loss REAL,
  learning_rate REAL NOT NULL,
  staleness INTEGER,
  PRIMARY KEY (run, rank, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  phase TEXT NOT NULL,
  seconds REAL NOT NULL,
  PRIMARY KEY (run, rank, epoch, phase)
) STRICT, WITHOUT ROWID;

CREATE TABLE waits (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  for_rank INTEGER NOT NULL,
  node INTEGER NOT NULL,
  count INTEGER NOT NULL,
  seconds REAL NOT NULL,
  PRIMARY KEY (run, rank, epoch, for_rank, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE arrivals (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  epoch INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  last_share REAL NOT NULL,
  cost_s REAL NOT NULL,
  step_s REAL NOT NULL,
  uncertainty_s REAL NOT NULL,
  PRIMARY KEY (run, epoch, rank)
) STRICT, WITHOUT ROWID;

CREATE TABLE layers (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  node INTEGER NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  output TEXT NOT NULL,
  parameters INTEGER NOT NULL,
  forward_flops REAL NOT NULL,
  PRIMARY KEY (run, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE layer_times (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  node INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  forward_s REAL NOT NULL,
  backward_s REAL NOT NULL,
  PRIMARY KEY (run, rank, epoch, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE spans (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  step INTEGER NOT NULL,
  number INTEGER NOT NULL,
  lane TEXT NOT NULL,
  name TEXT NOT NULL,
  begin_ns INTEGER NOT NULL,
  end_ns INTEGER NOT NULL,
  node INTEGER,
  operation INTEGER,
  bytes INTEGER,
  peer INTEGER,
  PRIMARY KEY (run, step, rank, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE resources (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  at_s REAL NOT NULL,
  cpu_s REAL NOT NULL,
  memory_bytes INTEGER NOT NULL,
  peak_memory_bytes INTEGER NOT NULL,
  read_operations INTEGER NOT NULL,
  write_operations INTEGER NOT NULL,
  read_bytes INTEGER NOT NULL,
  write_bytes INTEGER NOT NULL,
  switches INTEGER NOT NULL,
  forced_switches INTEGER NOT NULL,
  host_cpu_s REAL NOT NULL,
  host_cores INTEGER NOT NULL,
  host_memory_bytes INTEGER NOT NULL,
  host_memory_total_bytes INTEGER NOT NULL,
  disk_read_operations INTEGER NOT NULL,
  disk_write_operations INTEGER NOT NULL,
  disk_read_bytes INTEGER NOT NULL,
  disk_write_bytes INTEGER NOT NULL,
  sent_bytes INTEGER NOT NULL,
  sent_packets INTEGER NOT NULL,
  received_bytes INTEGER NOT NULL,
  received_packets INTEGER NOT NULL,
  loopback_bytes INTEGER NOT NULL,
  loopback_packets INTEGER NOT NULL,
  throttled_s REAL,
  PRIMARY KEY (run, rank, at_s)
) STRICT, WITHOUT ROWID;

CREATE TABLE traffic (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  peer INTEGER NOT NULL,
  at_s REAL NOT NULL,
  sent_bytes INTEGER NOT NULL,
  sent_messages INTEGER NOT NULL,
  received_bytes INTEGER NOT NULL,
  received_messages INTEGER NOT NULL,
  PRIMARY KEY (run, rank, peer, at_s)
) STRICT, WITHOUT ROWID;

CREATE TABLE staleness (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  behind INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (run, rank, epoch, behind)
) STRICT, WITHOUT ROWID;

CREATE TABLE latencies (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  operation TEXT NOT NULL,
  count INTEGER NOT NULL,
  sum_s REAL NOT NULL,
  least_s REAL NOT NULL,
  most_s REAL NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (run, rank, epoch, operation)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  at_s REAL NOT NULL,
  rank INTEGER NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;
)"};

// Of a store that this program understands; 0: an empty file. By one statement, since another
// process may be making the store.
int version_of(Database& database) {
  Statement statement = database.prepare(
      "SELECT (SELECT user_version FROM pragma_user_version),"
      " (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)");
  statement.next();
  const std::int64_t version = statement.integer(0);
  if (statement.integer(1) != kApplicationId) {
    const bool is_empty = statement.integer(2) == 0;
    if (version == 0 && is_empty) return 0;
    throw DataError("{}: a database, but no run store: choose another --store",
                    database.path().string());
  }
  if (version > kStoreVersion)
    throw DataError(
        "{}: a run store of version {}, written by a newer convoy; this one knows up to {}: update "
        "convoy, or choose another --store",
        database.path().string(), version, kStoreVersion);
  return int(version);
}

}  // namespace

void migrate(Database& database) {
  if (version_of(database) == kStoreVersion) return;
  Transaction transaction(database);
  const int version = version_of(database);  // another process may have been faster
  for (int i = version; i < kStoreVersion; ++i) database.run(kSteps[std::size_t(i)]);
  database.run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};", kApplicationId,
                           kStoreVersion));
  transaction.commit();
}

void check_schema(Database& database) {
  const int version = version_of(database);
  if (version == 0)
    throw DataError("{}: an empty file: convoy train --store {} makes a run store",
                    database.path().string(), database.path().string());
  if (version < kStoreVersion)
    throw DataError(
        "{}: a run store of the older version {}, which cannot be migrated without write access: "
        "make it writable once",
        database.path().string(), version);
}

}  // namespace convoy
