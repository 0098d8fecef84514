// convoy runs: what the run store holds.
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/runs_print.h"
#include "measure/trace.h"

namespace convoy {
namespace {

constexpr const char* kExamples = R"(Examples:
  convoy runs                                        the newest first
  convoy runs --model resnet18 --state finished --json
  convoy runs show latest
  convoy runs diff RUN OTHER                         results, and settings that differ
  convoy runs export RUN --table steps -o steps.csv
  convoy runs export RUN -o run.json                 everything
  convoy runs trace RUN -o trace.json                for ui.perfetto.dev
  convoy runs delete RUN)";

struct Arguments {
  std::string store = kDefaultStore;
  bool json = false;
  RunFilter filter;
  std::int64_t workers = 0;
  double days = 0;
  std::vector<std::string> runs;
  std::string table;
  std::string format;
  std::string out;
};

void list(const Arguments& arguments) {
  Store store(arguments.store, Access::read);
  RunFilter filter = arguments.filter;
  if (arguments.workers > 0) filter.workers = arguments.workers;
  if (arguments.days > 0) filter.since_unix_s = unix_time_s() - 86400 * arguments.days;
  const std::vector<RunRow> runs = store.list(filter);
  if (!arguments.json) {
    tell(stdout, runs.empty() ? "no such run\n" : run_table(runs));
    return;
  }
  nlohmann::json answer = {{"runs", nlohmann::json::array()}};
  for (const RunRow& run : runs) answer["runs"].push_back(run_json(run));
  print_answer(answer);
}

void show(const Arguments& arguments) {
  Store store(arguments.store, Access::read);
  const nlohmann::json details = run_details(store, store.find(arguments.runs.at(0)));
  if (arguments.json)
    print_answer(details);
  else
    tell(stdout, details_text(details));
}

void diff(const Arguments& arguments) {
  Store store(arguments.store, Access::read);
  const nlohmann::json differences =
      run_differences(store, store.find(arguments.runs.at(0)), store.find(arguments.runs.at(1)));
  if (arguments.json)
    print_answer(differences);
  else
    tell(stdout, differences_text(differences));
}

// One table, or a document with all of them.
std::string exported(Store& store, const Arguments& arguments, const std::string& format) {
  const RunRow run = store.find(arguments.runs.at(0));
  if (!arguments.table.empty()) {
    const nlohmann::json rows = store.rows(arguments.table, run.id);
    return format == "csv" ? csv_text(rows) : rows.dump() + "\n";
  }
  nlohmann::json document = nlohmann::json::object();
  for (const std::string& table : store_tables()) document[table] = store.rows(table, run.id);
  return document.dump() + "\n";
}

void write_export(const Arguments& arguments) {
  const std::string format = !arguments.format.empty()         ? arguments.format
                             : arguments.out.ends_with(".csv") ? "csv"
                             : arguments.table.empty() || arguments.out.ends_with(".json") ? "json"
                                                                                           : "csv";
  if (format == "csv" && arguments.table.empty())
    throw ConfigError("a CSV file has one table: add --table, one of {}",
                      fmt::join(store_tables(), ", "));
  Store store(arguments.store, Access::read);
  const std::string text = exported(store, arguments, format);
  if (arguments.out.empty())
    tell(stdout, text);
  else
    write_file_atomically(arguments.out, text);
}

void trace(const Arguments& arguments) {
  Store store(arguments.store, Access::read);
  write_file_atomically(arguments.out, trace_text(store, store.find(arguments.runs.at(0))));
}

void remove(const Arguments& arguments) {
  Store store(arguments.store, Access::write);
  std::vector<RunRow> runs;  // all are found before any is deleted
  for (const std::string& name : arguments.runs) {
    runs.push_back(store.find(name));
    if (run_state(runs.back()) == "running")
      throw ConfigError("run {} is still running (process {} on {}): stop it first",
                        runs.back().name, runs.back().pid, runs.back().host);
  }
  nlohmann::json deleted = nlohmann::json::array();
  for (const RunRow& run : runs) {
    store.remove(run.id);
    deleted.push_back(run.name);
    if (!arguments.json)
      tell(stdout,
           fmt::format("{} is forgotten; its folder {} is as it was\n", run.name, run.folder));
  }
  if (arguments.json) print_answer({{"deleted", deleted}});
}

CLI::App* add_part(CLI::App& command, Arguments& arguments, const char* name, const char* help,
                   int least, int most) {
  CLI::App* part = command.add_subcommand(name, help);
  part->add_option("RUN", arguments.runs, "name, its beginning, number, or latest")
      ->required()
      ->expected(least, most);
  part->add_flag("--json", arguments.json, "answer with one JSON object");
  part->add_option("--store", arguments.store, "run store")->type_name("FILE");
  return part;
}

}  // namespace

void add_runs_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("runs", "Runs that were recorded: list, compare, export");
  const auto arguments = std::make_shared<Arguments>();  // lives as long as the callbacks
  command->add_option("--store", arguments->store, "run store")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "answer with one JSON object");
  RunFilter& filter = arguments->filter;
  command->add_option("--name", filter.name, "part of the name");
  command->add_option("--model", filter.model, "network");
  command->add_option("--data", filter.data, "data set");
  command->add_option("--state", filter.state, "running, finished, interrupted, failed or lost")
      ->check(CLI::IsMember({"running", "finished", "interrupted", "failed", "lost"}));
  command->add_option("--sync", filter.sync, "how workers come to the same weights");
  command->add_option("--workers", arguments->workers, "so many")->check(CLI::PositiveNumber);
  command->add_option("--days", arguments->days, "started within so many days")
      ->check(CLI::PositiveNumber);
  command->add_option("--limit", filter.limit, "the newest so many")->check(CLI::PositiveNumber);
  add_part(*command, *arguments, "show", "Everything about one run", 1, 1)->callback([arguments] {
    show(*arguments);
  });
  add_part(*command, *arguments, "diff", "Two runs side by side", 2, 2)->callback([arguments] {
    diff(*arguments);
  });
  CLI::App* exporting =
      add_part(*command, *arguments, "export", "The records of a run as CSV or JSON", 1, 1);
  exporting->add_option("--table", arguments->table, "one of the store's (docs/store.md)");
  exporting->add_option("--format", arguments->format, "csv or json; default: by the file's name")
      ->check(CLI::IsMember({"csv", "json"}));
  exporting->add_option("-o,--out", arguments->out, "default: standard output")->type_name("FILE");
  exporting->callback([arguments] { write_export(*arguments); });
  CLI::App* tracing = add_part(*command, *arguments, "trace",
                               "Sampled steps in Chrome's and Perfetto's format", 1, 1);
  tracing->add_option("-o,--out", arguments->out, "file to write")->required()->type_name("FILE");
  tracing->callback([arguments] { trace(*arguments); });
  add_part(*command, *arguments, "delete", "Forget runs; their folders stay", 1, 1000)
      ->callback([arguments] { remove(*arguments); });
  command->require_subcommand(0, 1);
  command->footer(kExamples);
  command->callback([arguments, command] {
    if (command->get_subcommands().empty()) list(*arguments);
  });
}

}  // namespace convoy
