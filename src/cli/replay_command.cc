// convoy replay: runs a batch again that made something infinite or no number.
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "train/replay.h"

namespace convoy {
namespace {

constexpr const char* kExamples = R"(Example:
  convoy replay runs/RUN/replay/epoch-0001-step-000002.safetensors)";

struct Arguments {
  std::string file;
  int threads = 0;
  bool json = false;
};

void run_replay(const Arguments& arguments) {
  const Replay result = replay(arguments.file, arguments.threads);
  std::FILE* human = arguments.json ? stderr : stdout;
  fmt::print(human, "recorded: {} of worker {} was not a finite number, in a batch of {}\n",
             result.recorded, result.worker, result.samples.size());
  fmt::print(human, "now: {}\n",
             result.found.empty() ? "everything is finite" : result.found + " is not");
  if (!result.alone.empty())
    fmt::print(human, "samples that show it alone: {}\n", fmt::join(result.alone, ", "));
  if (arguments.json)
    print_answer({{"recorded", result.recorded},
                  {"found", result.found},
                  {"reproduced", !result.found.empty()},
                  {"worker", result.worker},
                  {"samples", result.samples},
                  {"alone", result.alone}});
}

}  // namespace

void add_replay_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("replay", "Run a batch again that made a number infinite or none");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("file", arguments->file, "what the failed run wrote")
      ->required()
      ->type_name("FILE");
  command->add_option("--threads", arguments->threads, "of the engine (0: all cores)")
      ->check(CLI::Range(0, 4096));
  command->add_flag("--json", arguments->json, "end standard output with one JSON object");
  command->footer(kExamples);
  command->callback([arguments] { run_replay(*arguments); });
}

}  // namespace convoy
