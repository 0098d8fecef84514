#include "measure/statements.h"

#include <fmt/ranges.h>

#include <optional>

namespace convoy {
namespace {

// "INSERT OR REPLACE INTO t VALUES (?1, ..., ?n)".
Statement replacing(Database& database, const char* table, int columns) {
  std::string places;
  for (int i = 1; i <= columns; ++i) places += fmt::format("{}?{}", i == 1 ? "" : ", ", i);
  return database.prepare(fmt::format("INSERT OR REPLACE INTO {} VALUES ({})", table, places));
}

// Adds the columns after the key to those of the row that is there.
Statement adding(Database& database, const char* table, const char* key,
                 const std::vector<std::string>& sums) {
  const auto keys = 1 + std::count(key, key + std::char_traits<char>::length(key), ',');
  std::string places, changes;
  for (int i = 1; i <= int(keys) + int(sums.size()); ++i)
    places += fmt::format("{}?{}", i == 1 ? "" : ", ", i);
  for (const std::string& sum : sums)
    changes += fmt::format("{}{} = {} + excluded.{}", changes.empty() ? "" : ", ", sum, sum, sum);
  return database.prepare(
      fmt::format("INSERT INTO {0} ({1}, {2}) VALUES ({3}) ON CONFLICT ({1}) DO UPDATE SET {4}",
                  table, key, fmt::join(sums, ", "), places, changes));
}

template <typename Number>
std::optional<Number> known(Number value) {
  return value < 0 ? std::nullopt : std::optional(value);
}

// What a span shows: "forward", "all-reduce".
std::string_view span_name(const SpanRecord& span) {
  return span.lane == Lane::communication ? std::string_view("all-reduce")
                                          : kPhaseNames[std::size_t(span.phase)];
}

}  // namespace

RecordStatements::RecordStatements(Database& database)
    : step_(replacing(database, "steps", 20)),
      ledger_(adding(database, "ledger", "run, rank, epoch, phase", {"seconds"})),
      wait_(adding(database, "waits", "run, rank, epoch, for_rank, node", {"count", "seconds"})),
      layer_(adding(database, "layer_times", "run, rank, epoch, node",
                    {"steps", "forward_s", "backward_s"})),
      span_(replacing(database, "spans", 12)),
      resource_(replacing(database, "resources", 27)),
      traffic_(replacing(database, "traffic", 8)),
      staleness_(adding(database, "staleness", "run, rank, epoch, behind", {"count"})),
      latency_(database.prepare(
          "INSERT INTO latencies (run, rank, epoch, operation, count, sum_s, least_s, most_s, "
          "bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (run, rank, epoch, "
          "operation) DO UPDATE SET count = count + excluded.count, sum_s = sum_s + "
          "excluded.sum_s, least_s = min(least_s, excluded.least_s), most_s = max(most_s, "
          "excluded.most_s), bytes = bytes + excluded.bytes")),
      // The leading worker's process may not have entered the rank yet.
      wall_(database.prepare(
          "INSERT INTO ranks (run, rank, role, host, pid, threads, wall_s) VALUES (?1, ?2, "
          "'worker', '', 0, 0, ?3) ON CONFLICT (run, rank) DO UPDATE SET wall_s = wall_s + "
          "excluded.wall_s")) {}

void RecordStatements::write(std::int64_t run, const Records& records) {
  for (const StepRecord& r : records.steps)
    step_
        .bind(run, r.rank, r.step, r.epoch, r.begin_ns, r.load_ns, r.forward_ns, r.backward_ns,
              r.communication_ns, r.wait_ns, r.update_ns, r.other_ns, known(r.wait_rank),
              r.wait_rank < 0 ? std::nullopt : std::optional(r.wait_node), known(r.wait_operation),
              r.samples, r.correct, r.loss, r.learning_rate, known(r.staleness))
        .run();
  for (const LedgerRecord& r : records.ledger) {
    ledger_.bind(run, r.rank, r.epoch, kPhaseNames[std::size_t(r.phase)], r.seconds).run();
    wall_.bind(run, r.rank, r.seconds).run();
  }
  for (const WaitRecord& r : records.waits)
    wait_.bind(run, r.rank, r.epoch, r.for_rank, r.node, r.count, r.seconds).run();
  for (const LayerRecord& r : records.layers)
    layer_.bind(run, r.rank, r.epoch, r.node, r.steps, r.forward_s, r.backward_s).run();
  for (const SpanRecord& r : records.spans)
    span_
        .bind(run, r.rank, r.step, r.number, kLaneNames[int(r.lane)], span_name(r), r.begin_ns,
              r.end_ns, known(r.node), known(r.operation), known(r.bytes), known(r.peer))
        .run();
  for (const ResourceRecord& r : records.resources)
    resource_
        .bind(run, r.rank, r.at_s, r.cpu_s, r.memory_bytes, r.peak_memory_bytes, r.read_operations,
              r.write_operations, r.read_bytes, r.write_bytes, r.switches, r.forced_switches,
              r.host_cpu_s, r.host_cores, r.host_memory_bytes, r.host_memory_total_bytes,
              r.disk_read_operations, r.disk_write_operations, r.disk_read_bytes,
              r.disk_write_bytes, r.sent_bytes, r.sent_packets, r.received_bytes,
              r.received_packets, r.loopback_bytes, r.loopback_packets, known(r.throttled_s))
        .run();
  for (const TrafficRecord& r : records.traffic)
    traffic_
        .bind(run, r.rank, r.peer, r.at_s, r.sent_bytes, r.sent_messages, r.received_bytes,
              r.received_messages)
        .run();
  for (const StalenessRecord& r : records.staleness)
    staleness_.bind(run, r.rank, r.epoch, r.behind, r.count).run();
  for (const LatencyRecord& r : records.latencies)
    latency_
        .bind(run, r.rank, r.epoch, kTimedOperationNames[int(r.operation)], r.count, r.sum_s,
              r.least_s, r.most_s, r.bytes)
        .run();
}

std::string free_name(Database& database, const std::string& name) {
  Statement taken = database.prepare("SELECT 1 FROM runs WHERE name = ?1");
  std::string candidate = name;
  for (int i = 2; taken.bind(candidate).next(); ++i) candidate = fmt::format("{}-{}", name, i);
  return candidate;
}

namespace {

constexpr const char* kSettings[] = {
    "started_unix_s", "written_unix_s", "folder",        "host",          "pid",        "model",
    "data",           "precision",      "sync",          "algorithm",     "wire",       "transport",
    "world",          "batch",          "epochs",        "seed",          "workers",    "servers",
    "threads",        "parameters",     "train_samples", "configuration", "environment"};

// Binds ?1 to ?23 as in kSettings, ?24 and ?25 to the rest.
template <typename First, typename Second>
void bind_run(Statement& statement, const RunRow& run, const First& first, const Second& second) {
  const auto text = [](const nlohmann::json& document) {
    return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  statement.bind(run.started_unix_s, run.written_unix_s, run.folder, run.host, run.pid, run.model,
                 run.data, run.precision, run.sync, run.algorithm, run.wire, run.transport,
                 run.world, run.batch, run.epochs, run.seed, run.workers, run.servers, run.threads,
                 run.parameters, run.train_samples, text(run.configuration), text(run.environment),
                 first, second);
}

}  // namespace

std::int64_t insert_run(Database& database, const RunRow& run, const std::string& name) {
  Statement statement = database.prepare(fmt::format(
      "INSERT INTO runs ({}, name, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
      "?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)",
      fmt::join(kSettings, ", ")));
  bind_run(statement, run, name, "running");
  statement.run();
  return database.last_id();
}

void reopen_run(Database& database, std::int64_t id, const RunRow& run) {
  std::string changes;
  int place = 0;
  for (const char* setting : kSettings)
    if (++place > 1) changes += fmt::format("{} = ?{}, ", setting, place);
  Statement statement = database.prepare(
      fmt::format("UPDATE runs SET {} state = ?24, ended_unix_s = NULL, result = NULL, verdict = "
                  "'', error = '', sessions = sessions + 1 WHERE id = ?25",
                  changes));
  bind_run(statement, run, "running", id);
  statement.run();
  // Ranks may be fewer now, or others: they enter themselves again.
}

void forget_after(Database& database, std::int64_t run, std::int64_t step, int epochs) {
  for (const char* table : {"steps", "spans"})
    database.prepare(fmt::format("DELETE FROM {} WHERE run = ?1 AND step > ?2", table))
        .bind(run, step)
        .run();
  database.prepare("DELETE FROM epochs WHERE run = ?1 AND epoch > ?2").bind(run, epochs).run();
}

}  // namespace convoy
