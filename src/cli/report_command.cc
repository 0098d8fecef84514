// convoy report: runs as one HTML file.
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "measure/store.h"
#include "report/document.h"
#include "report/html.h"

namespace convoy {
namespace {

constexpr const char* kExamples = R"(Examples:
  convoy report                                     (the newest run, as report.html in its folder)
  convoy report mnist_cnn-mnist-20260131-235959 -o mnist.html
  convoy report 3 4 5 -o scaling.html               (side by side: speed-up, efficiency)
  convoy report latest --document > run.json        (what the page is made of)
A run is named by its number, its name, or the beginning of its name; convoy runs lists them.)";

struct Arguments {
  std::vector<std::string> runs;
  std::string store = kDefaultStore;
  std::string output;
  bool document = false;
  bool json = false;
};

std::vector<RunRow> find_runs(Store& store, const std::vector<std::string>& names) {
  std::vector<RunRow> runs;
  for (const std::string& name : names.empty() ? std::vector<std::string>{"latest"} : names) {
    RunRow run = store.find(name);
    for (const RunRow& other : runs)
      if (other.id == run.id)
        throw ConfigError("the run {} is named twice: name it once", run.name);
    runs.push_back(std::move(run));
  }
  return runs;
}

// In the folder of the only run, if that is still there, or here.
std::filesystem::path default_output(const std::vector<RunRow>& runs) {
  std::error_code ignored;
  if (runs.size() == 1 && std::filesystem::is_directory(runs.front().folder, ignored))
    return std::filesystem::path(runs.front().folder) / "report.html";
  return "report.html";
}

void run_report(const Arguments& arguments) {
  Store store(arguments.store, Access::read);
  const std::vector<RunRow> runs = find_runs(store, arguments.runs);
  if (arguments.document) {
    print_answer(report_document(store, runs));
    return;
  }
  const std::filesystem::path output =
      arguments.output.empty() ? default_output(runs) : std::filesystem::path(arguments.output);
  const std::string html = report_html(store, runs);
  write_file_atomically(output, html);
  if (!arguments.json) {
    fmt::print("{}\n", output.string());
    return;
  }
  nlohmann::json names = nlohmann::json::array();
  for (const RunRow& run : runs) names.push_back(run.name);
  print_answer({{"report", output.string()}, {"bytes", html.size()}, {"runs", names}});
}

}  // namespace

void add_report_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("report", "Show runs as one HTML file");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("runs", arguments->runs, "which runs; none: the newest")->type_name("RUN");
  command->add_option("-o,--output", arguments->output, "where to write it")->type_name("FILE");
  command->add_option("--store", arguments->store, "the run store")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_flag("--document", arguments->document,
                    "print the document that the page is made of, as JSON, instead");
  command->add_flag("--json", arguments->json,
                    "end standard output with the result as one JSON object");
  command->footer(kExamples);
  command->callback([arguments] { run_report(*arguments); });
}

}  // namespace convoy
