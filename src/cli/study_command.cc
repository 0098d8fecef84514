// convoy study: a published study, repeated by one command.
#include <fmt/chrono.h>
#include <signal.h>

#include <ctime>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "kernels/cpu.h"
#include "lab/study_run.h"

namespace convoy {
namespace {

constexpr const char* kExamples = R"(Examples:
  convoy study experiments/wang2020.toml                    (all rows of Table 2; stop and go on as you like)
  convoy study experiments/wang2020.toml --quick            (a trial, a few seconds a row)
  convoy study experiments/wang2020.toml --rows 1x2,2x1 --out runs/two --json)";

struct Arguments {
  std::string file;
  std::string rows;
  std::string out;
  bool quick = false;
  bool json = false;
};

Study make_study(const Arguments& arguments) {
  const auto bytes = read_file(arguments.file, kMaxConfigBytes);
  Study study =
      read_study({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, arguments.file);
  if (!arguments.rows.empty()) study.rows = parse_rows(arguments.rows, "--rows");
  return arguments.quick ? quick_study(std::move(study)) : study;
}

// One folder a day, so that the same command goes on with what it began.
std::string default_folder(const Study& study, bool quick) {
  return fmt::format("runs/{}{}-{:%Y%m%d}", study.name, quick ? "-quick" : "",
                     fmt::localtime(std::time(nullptr)));
}

nlohmann::json answer_of(const Study& study, const StudyResult& result, const std::string& folder) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Wang2020Row& done : result.rows) {
    nlohmann::json row = done.figures.to_json();
    const Wang2020Figures* theirs = wang2020_published(done.row);
    row["row"] = done.row.name();
    row["nodes"] = done.row.nodes;
    row["processes"] = done.row.processes;
    row["hosts"] = done.hosts;
    row["published"] = theirs ? theirs->to_json() : nlohmann::json();
    rows.push_back(std::move(row));
  }
  return {{"study", study.name}, {"rows", rows}, {"folder", folder}};
}

void run(const Arguments& arguments) {
  const Study study = make_study(arguments);
  const std::string folder =
      arguments.out.empty() ? default_folder(study, arguments.quick) : arguments.out;
  SignalQueue signals({SIGINT, SIGTERM, SIGHUP});
  const StudyResult result =
      run_study(study,
                {.folder = folder,
                 .program = std::filesystem::read_symlink("/proc/self/exe").string(),
                 .cores = cpu().cores},
                signals);
  if (!result.rows.empty())
    fmt::print("{} ({}), {} on {}, batch {} x processes, {} epoch{}\n{}", study.name, folder,
               study.training.model, study.training.data, study.batch_per_process,
               study.training.epochs, study.training.epochs == 1 ? "" : "s",
               wang2020_table(result.rows));
  if (!result.finished) {
    tell(stderr, "convoy: stopped; the same command goes on with the next row\n");
    throw Interrupted();
  }
  if (arguments.json) print_answer(answer_of(study, result, folder));
}

}  // namespace

void add_study_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("study", "Repeat a published study");
  const auto arguments = std::make_shared<Arguments>();  // lives as long as the callback
  command->add_option("file", arguments->file, "TOML file that describes it")
      ->type_name("FILE")
      ->required();
  command->add_option("--rows", arguments->rows,
                      "nodes x processes of each, instead of the file's: 1x1,2x4");
  command->add_flag("--quick", arguments->quick, "a trial: one epoch of the first 6000 samples");
  command
      ->add_option("--out", arguments->out,
                   "where rows are kept, and found again (default runs/STUDY-DATE)")
      ->type_name("DIR");
  command->add_flag("--json", arguments->json, "end standard output with one JSON object");
  command->footer(kExamples);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace convoy
