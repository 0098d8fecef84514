#include "cli/runs_print.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>

#include "measure/phase.h"
#include "train/config.h"

namespace convoy {
namespace {

using nlohmann::json;

std::string plain(const json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump();
}

// Control characters could move a terminal's cursor; a run's name may hold any.
std::string printable(std::string text) {
  for (char& letter : text)
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) letter = '?';
  return text;
}

std::string percent(const json& share) {
  return share.is_null() ? "-" : fmt::format("{:.2f} %", 100 * share.get<double>());
}

std::string figure(const json& value, const char* format) {
  return value.is_null() ? "-" : fmt::format(fmt::runtime(format), value.get<double>());
}

// Rows of cells with aligned columns.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// Settings that say where a run is kept, not what it is.
bool tells_place(const std::string& name) { return name == "out" || name == "store"; }

json changed_settings(const json& configuration) {
  json changed = json::object();
  const json defaults = to_json(TrainConfig{});
  for (const auto& [name, value] : configuration.items())
    if (!tells_place(name) && (!defaults.contains(name) || defaults.at(name) != value))
      changed[name] = value;
  return changed;
}

// Seconds by phase for each rank, in the order of the phases.
json ledger_json(Store& store, std::int64_t run) {
  Statement rows = store.database().prepare(
      "SELECT rank, phase, sum(seconds) FROM ledger WHERE run = ?1 GROUP BY rank, phase");
  rows.bind(run);
  json ranks = json::object();
  while (rows.next()) ranks[rows.text(0)][rows.text(1)] = rows.real(2);
  return ranks;
}

json waits_json(Store& store, std::int64_t run) {
  Statement rows = store.database().prepare(
      "SELECT rank, for_rank, sum(count), sum(seconds) FROM waits WHERE run = ?1 GROUP BY rank, "
      "for_rank ORDER BY sum(seconds) DESC");
  rows.bind(run);
  json list = json::array();
  while (rows.next())
    list.push_back({{"rank", rows.integer(0)},
                    {"for_rank", rows.integer(1)},
                    {"count", rows.integer(2)},
                    {"seconds", rows.real(3)}});
  return list;
}

std::vector<std::string> rank_names(const json& ledger) {
  std::vector<std::string> ranks;
  for (const auto& [rank, phases] : ledger.items()) ranks.push_back(rank);
  std::sort(ranks.begin(), ranks.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return ranks;
}

std::string ledger_text(const json& ledger) {
  std::vector<std::vector<std::string>> table = {{"", "seconds"}};
  for (const std::string_view phase : kPhaseNames) table.front().push_back(std::string(phase));
  for (const std::string& rank : rank_names(ledger)) {
    const json& phases = ledger.at(rank);
    double sum_s = 0;
    for (const auto& [phase, seconds] : phases.items()) sum_s += seconds.get<double>();
    std::vector<std::string> row = {"rank " + rank, fmt::format("{:.2f}", sum_s)};
    for (const std::string_view phase : kPhaseNames)
      row.push_back(
          sum_s > 0 ? fmt::format("{:.1f} %", 100 * phases.value(std::string(phase), 0.0) / sum_s)
                    : "-");
    table.push_back(std::move(row));
  }
  return aligned(table);
}

}  // namespace

std::string moment_text(double unix_s) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(std::time_t(unix_s)));
}

json run_json(const RunRow& run) {
  json object = {{"id", run.id},
                 {"run", run.name},
                 {"state", run_state(run)},
                 {"started", moment_text(run.started_unix_s)},
                 {"folder", run.folder},
                 {"host", run.host},
                 {"model", run.model},
                 {"data", run.data},
                 {"precision", run.precision},
                 {"sync", run.sync},
                 {"algorithm", run.algorithm},
                 {"wire", run.wire},
                 {"transport", run.transport},
                 {"world", run.world},
                 {"batch", run.batch},
                 {"epochs", run.epochs},
                 {"seed", run.seed},
                 {"workers", run.workers},
                 {"servers", run.servers},
                 {"threads", run.threads},
                 {"parameters", run.parameters},
                 {"sessions", run.sessions},
                 {"steps", run.steps},
                 {"wall_s", run.wall_s}};
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) object[name] = *value;
  };
  add("images_per_s", run.images_per_s);
  add("train_loss", run.train_loss);
  add("test_loss", run.test_loss);
  add("test_accuracy", run.test_accuracy);
  if (!run.verdict.empty()) object["verdict"] = run.verdict;
  if (!run.error.empty()) object["error"] = run.error;
  return object;
}

std::string run_table(const std::vector<RunRow>& runs) {
  std::vector<std::vector<std::string>> table = {{"run", "state", "started (UTC)", "workers",
                                                  "batch", "steps", "wall s", "images/s",
                                                  "train loss", "test accuracy"}};
  for (const RunRow& run : runs) {
    const auto maybe = [](const std::optional<double>& value) {
      return value ? json(*value) : json(nullptr);
    };
    table.push_back({printable(run.name), run_state(run), moment_text(run.started_unix_s),
                     run.servers > 0 ? fmt::format("{}+{}", run.workers, run.servers)
                                     : fmt::format("{}", run.workers),
                     fmt::format("{}", run.batch), fmt::format("{}", run.steps),
                     fmt::format("{:.1f}", run.wall_s), figure(maybe(run.images_per_s), "{:.0f}"),
                     figure(maybe(run.train_loss), "{:.4f}"), percent(maybe(run.test_accuracy))});
  }
  return aligned(table);
}

json run_details(Store& store, const RunRow& run) {
  json details = run_json(run);
  details["settings"] = changed_settings(run.configuration);
  details["environment"] = run.environment;
  details["epochs_done"] = store.rows("epochs", run.id);
  details["ledger_s"] = ledger_json(store, run.id);
  details["waits"] = waits_json(store, run.id);
  details["events"] = store.rows("events", run.id);
  return details;
}

std::string details_text(const json& details) {
  std::vector<std::vector<std::string>> rows;
  for (const char* name :
       {"run", "state", "started", "folder", "host", "workers", "threads", "steps", "wall_s",
        "images_per_s", "train_loss", "test_loss", "test_accuracy", "verdict", "error"})
    if (details.contains(name)) rows.push_back({name, printable(plain(details.at(name)))});
  for (const auto& [name, value] : details.at("settings").items())
    rows.push_back({"  " + name, printable(plain(value))});
  if (details.at("environment").is_object())
    for (const char* name : {"commit", "cpu", "isa"})
      if (details["environment"].contains(name))
        rows.push_back({name, printable(plain(details["environment"][name]))});
  std::string text = aligned(rows);
  std::vector<std::vector<std::string>> epochs = {
      {"epoch", "seconds", "images/s", "train loss", "test loss", "test accuracy"}};
  for (const json& epoch : details.at("epochs_done"))
    epochs.push_back({plain(epoch["epoch"]), figure(epoch["seconds"], "{:.2f}"),
                      figure(epoch["images_per_s"], "{:.0f}"),
                      figure(epoch["train_loss"], "{:.4f}"), figure(epoch["test_loss"], "{:.4f}"),
                      percent(epoch["test_accuracy"])});
  if (epochs.size() > 1) text += "\n" + aligned(epochs);
  if (!details.at("ledger_s").empty()) text += "\n" + ledger_text(details.at("ledger_s"));
  std::vector<std::vector<std::string>> waits;
  for (const json& wait : details.at("waits"))
    waits.push_back({fmt::format("rank {} waited for rank {}", wait["rank"].get<int>(),
                                 wait["for_rank"].get<int>()),
                     fmt::format("{:.3f} s", wait["seconds"].get<double>()),
                     fmt::format("{} times", wait["count"].get<std::int64_t>())});
  if (!waits.empty()) text += "\n" + aligned(waits);
  return text;
}

json run_differences(Store& store, const RunRow& a, const RunRow& b) {
  json settings = json::object();
  json names = a.configuration;
  names.update(b.configuration);
  for (const auto& [name, ignored] : names.items()) {
    const json left = a.configuration.value(name, json(nullptr));
    const json right = b.configuration.value(name, json(nullptr));
    if (!tells_place(name) && left != right) settings[name] = {left, right};
  }
  json environment = json::object();
  for (const char* name : {"commit", "host", "cpu", "isa", "cores", "threads", "compiler"}) {
    const json left = a.environment.value(name, json(nullptr));
    const json right = b.environment.value(name, json(nullptr));
    if (left != right) environment[name] = {left, right};
  }
  json figures = json::object();
  const json left = run_json(a), right = run_json(b);
  for (const char* name : {"state", "workers", "steps", "wall_s", "images_per_s", "train_loss",
                           "test_loss", "test_accuracy"})
    figures[name] = {left.value(name, json(nullptr)), right.value(name, json(nullptr))};
  return {{"runs", {a.name, b.name}},
          {"figures", figures},
          {"settings", settings},
          {"environment", environment},
          {"ledger_s", {ledger_json(store, a.id), ledger_json(store, b.id)}}};
}

std::string differences_text(const json& differences) {
  const auto row = [](const std::string& name, const json& pair) {
    std::vector<std::string> cells = {name, printable(plain(pair[0])), printable(plain(pair[1]))};
    if (pair[0].is_number() && pair[1].is_number() && pair[0].get<double>() != 0)
      cells.push_back(fmt::format("x {:.3g}", pair[1].get<double>() / pair[0].get<double>()));
    return cells;
  };
  std::vector<std::vector<std::string>> rows = {row("", differences.at("runs"))};
  for (const char* name : {"state", "workers", "steps", "wall_s", "images_per_s", "train_loss",
                           "test_loss", "test_accuracy"})
    rows.push_back(row(name, differences.at("figures").at(name)));
  for (const char* part : {"settings", "environment"})
    for (const auto& [name, pair] : differences.at(part).items())
      rows.push_back(row("  " + name, pair));
  std::string text = aligned(rows);
  for (int i = 0; i < 2; ++i)
    if (const json& ledger = differences.at("ledger_s").at(std::size_t(i)); !ledger.empty())
      text += fmt::format("\n{}\n{}", printable(differences.at("runs")[std::size_t(i)]),
                          ledger_text(ledger));
  return text;
}

std::string csv_text(const json& rows) {
  if (rows.empty()) return "";
  const auto cell = [](const json& value) {
    if (value.is_null()) return std::string();
    if (value.is_number_float()) return fmt::format("{}", value.get<double>());
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
    return quoted + "\"";
  };
  std::string text;
  std::vector<std::string> names;
  for (const auto& [name, value] : rows.front().items()) names.push_back(name);
  text += fmt::format("{}\r\n", fmt::join(names, ","));
  for (const json& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& name : names) cells.push_back(cell(row.at(name)));
    text += fmt::format("{}\r\n", fmt::join(cells, ","));
  }
  return text;
}

}  // namespace convoy
