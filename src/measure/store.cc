#include "measure/store.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/clock.h"
#include "base/file.h"
#include "base/nearest.h"
#include "measure/schema.h"

namespace convoy {
namespace {

constexpr double kSilence_s = 60;

constexpr const char* kColumns =
    "id, name, state, started_unix_s, ended_unix_s, written_unix_s, folder, host, pid, model, "
    "data, precision, sync, algorithm, wire, transport, world, batch, epochs, seed, workers, "
    "servers, threads, parameters, train_samples, sessions, steps, wall_s, images_per_s, "
    "train_loss, test_loss, test_accuracy, verdict, error";
constexpr const char* kDocuments = ", configuration, environment, result";

nlohmann::json parse(const Statement& row, int column) {
  if (row.is_null(column)) return nullptr;
  return nlohmann::json::parse(row.text(column), nullptr, false);
}

// As kColumns has them, followed by kDocuments where `whole`.
RunRow run_of(const Statement& row, bool whole) {
  int next = 0;
  const auto text = [&] { return row.text(next++); };
  const auto integer = [&] { return row.integer(next++); };
  const auto real = [&] { return row.real(next++); };
  const auto maybe = [&] { return row.maybe_real(next++); };
  RunRow run;
  run.id = integer();
  run.name = text();
  run.state = text();
  run.started_unix_s = real();
  run.ended_unix_s = maybe();
  run.written_unix_s = real();
  run.folder = text();
  run.host = text();
  run.pid = integer();
  for (std::string* field : {&run.model, &run.data, &run.precision, &run.sync, &run.algorithm,
                             &run.wire, &run.transport, &run.world})
    *field = text();
  for (std::int64_t* field : {&run.batch, &run.epochs, &run.seed, &run.workers, &run.servers,
                              &run.threads, &run.parameters, &run.train_samples})
    *field = integer();
  run.sessions = int(integer());
  run.steps = integer();
  run.wall_s = real();
  run.images_per_s = maybe();
  run.train_loss = maybe();
  run.test_loss = maybe();
  run.test_accuracy = maybe();
  run.verdict = text();
  run.error = text();
  if (!whole) return run;
  run.configuration = parse(row, next++);
  run.environment = parse(row, next++);
  run.result = parse(row, next++);
  return run;
}

Database open_database(const std::filesystem::path& path, Access access) {
  if (access == Access::create && path.has_parent_path()) make_folder(path.parent_path());
  Database database(path, access);
  if (access == Access::read) {
    check_schema(database);
    return database;
  }
  // Many readers beside a writer; what was committed survives any crash of the process, and all but
  // the last moments a crash of the machine.
  database.write_ahead();
  database.run("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;");
  migrate(database);
  return database;
}

bool process_lives(std::int64_t pid) { return ::kill(pid_t(pid), 0) == 0 || errno == EPERM; }

std::string this_host() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace

const std::vector<std::string>& store_tables() {
  static const std::vector<std::string> tables = {
      "runs",      "ranks",    "epochs",    "steps",       "ledger",
      "waits",     "arrivals", "layers",    "layer_times", "spans",
      "resources", "traffic",  "staleness", "latencies",   "events"};
  return tables;
}

Store::Store(const std::filesystem::path& path, Access access)
    : database_(open_database(path, access)) {}

std::vector<RunRow> Store::list(const RunFilter& filter) {
  Statement statement = database_.prepare(fmt::format(
      "SELECT {} FROM runs WHERE (?1 = '' OR instr(name, ?1) > 0) AND (?2 = '' OR model = ?2) AND "
      "(?3 = '' OR data = ?3) AND (?4 = '' OR sync = ?4) AND (?5 IS NULL OR workers = ?5) AND (?6 "
      "IS NULL OR started_unix_s >= ?6) ORDER BY started_unix_s DESC, id DESC",
      kColumns));
  statement.bind(filter.name, filter.model, filter.data, filter.sync, filter.workers,
                 filter.since_unix_s);
  std::vector<RunRow> runs;
  while (statement.next()) {
    RunRow run = run_of(statement, false);
    if (!filter.state.empty() && run_state(run) != filter.state) continue;
    runs.push_back(std::move(run));
    if (filter.limit > 0 && std::int64_t(runs.size()) == filter.limit) break;
  }
  return runs;
}

RunRow Store::find(const std::string& id_or_name) {
  const auto select = [&](const std::string& condition) {
    return database_.prepare(
        fmt::format("SELECT {}{} FROM runs WHERE {}", kColumns, kDocuments, condition));
  };
  std::int64_t id = 0;
  const char* end = id_or_name.data() + id_or_name.size();
  const auto [rest, error] = std::from_chars(id_or_name.data(), end, id);
  const bool number = error == std::errc{} && rest == end;
  Statement exact = select("name = ?1 OR id = ?2 ORDER BY name = ?1 DESC");
  exact.bind(id_or_name, number ? std::optional(id) : std::nullopt);
  if (exact.next()) return run_of(exact, true);
  if (id_or_name == "latest") {
    Statement latest = select("1 ORDER BY started_unix_s DESC, id DESC LIMIT 1");
    if (latest.next()) return run_of(latest, true);
    throw ConfigError("{}: no run is recorded yet", database_.path().string());
  }
  Statement like = select("substr(name, 1, length(?1)) = ?1 ORDER BY started_unix_s DESC");
  like.bind(id_or_name);
  std::vector<RunRow> found;
  while (!id_or_name.empty() && found.size() < 4 && like.next())
    found.push_back(run_of(like, true));
  if (found.size() == 1) return found.front();
  std::vector<std::string> names;
  for (const RunRow& run : found) names.push_back(run.name);
  if (!names.empty())
    throw ConfigError("'{}' is the beginning of several runs: {}{}", id_or_name,
                      fmt::join(names, ", "), names.size() == 4 ? ", ..." : "");
  for (const RunRow& run : list()) names.push_back(run.name);
  if (names.empty())
    throw ConfigError("there is no run '{}': {} has none", id_or_name, database_.path().string());
  throw ConfigError("there is no run '{}': did you mean {}? (convoy runs lists all)", id_or_name,
                    nearest(id_or_name, names));
}

void Store::remove(std::int64_t run) {
  Transaction transaction(database_);
  database_.prepare("DELETE FROM runs WHERE id = ?1").bind(run).run();
  transaction.commit();
}

nlohmann::json Store::rows(const std::string& table, std::int64_t run) {
  const auto& tables = store_tables();
  if (std::find(tables.begin(), tables.end(), table) == tables.end())
    throw ConfigError("there is no table '{}': did you mean {}?", table, nearest(table, tables));
  Statement statement = database_.prepare(
      fmt::format("SELECT * FROM {} WHERE {} = ?1", table, table == "runs" ? "id" : "run"));
  statement.bind(run);
  nlohmann::json list = nlohmann::json::array();
  while (statement.next()) {
    nlohmann::json row = nlohmann::json::object();
    for (int i = 0; i < statement.columns(); ++i) {
      nlohmann::json& value = row[statement.name(i)];
      if (statement.is_integer(i))
        value = statement.integer(i);
      else if (statement.is_real(i))
        value = statement.real(i);
      else if (!statement.is_null(i))
        value = statement.text(i);
    }
    list.push_back(std::move(row));
  }
  return list;
}

std::string run_state(const RunRow& run) {
  if (run.state != "running") return run.state;
  const bool alive = run.host == this_host() ? process_lives(run.pid)
                                             : unix_time_s() - run.written_unix_s < kSilence_s;
  return alive ? "running" : "lost";
}

}  // namespace convoy
