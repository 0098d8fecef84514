#include "cli/command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/nearest.h"
#include "world/job.h"

#ifndef CONVOY_VERSION
#define CONVOY_VERSION "unknown"
#endif

namespace convoy {
namespace {

constexpr const char* kExamples = R"(Examples:
  convoy data get mnist
  convoy train --model mnist_cnn --data mnist --epochs 5 --optimizer adam --lr 0.001
  convoy train --config experiments/mnist_cnn.toml --json
  convoy eval runs/RUN/final.safetensors --data mnist
  convoy COMMAND --help tells more about each command)";

// Errors are one line, whatever a library put into its text.
std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::string line;
  for (char letter : text) line += letter == '\n' ? std::string("; ") : std::string(1, letter);
  return line;
}

// `lost` is the peer whose loss is the cause, if one is.
int complain(int code, const std::string& text, int lost = -1) {
  std::fflush(stdout);
  // A launcher says it, once for all ranks.
  if (!report_failure(one_line(text), lost))
    tell(stderr, fmt::format("convoy: {}\n", one_line(text)));
  return code;
}

// The innermost subcommand that the arguments named.
const CLI::App& chosen(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : chosen(*parsed.back());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() ? full_name(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// One line about arguments that CLI11 refused.
std::string describe(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = chosen(app);
  const std::string help = fmt::format("{} --help", full_name(command));
  const std::vector<std::string> extras = app.remaining(true);
  const std::vector<std::string> commands = command_names(command);
  if (!extras.empty() && extras.front() != "--") {  // what follows -- belongs to another program
    const std::string& extra = extras.front();
    if (extra.starts_with("-")) {
      const std::string word = extra.substr(0, extra.find('='));
      return fmt::format("unknown option {}: did you mean {}? ({})", word,
                         nearest(word, option_names(command)), help);
    }
    if (!commands.empty())
      return fmt::format("unknown command '{}': did you mean {}? ({})", extra,
                         nearest(extra, commands), help);
    return fmt::format("unexpected argument '{}' ({})", extra, help);
  }
  if (command.get_require_subcommand_min() > 0 && command.get_subcommands().empty())
    return fmt::format("say what to do: {} ({})", fmt::join(commands, ", "), help);
  for (const CLI::Option* option : command.get_options())
    if (option->count() > 1 && option->get_items_expected_max() == 1)
      return fmt::format("{} is given {} times: give it once ({})", option->get_name(),
                         option->count(), help);
  return fmt::format("{} ({})", one_line(error.what()), help);
}

// Standard output may be a full disk or a closed pipe: an answer that did not arrive is a failure.
int finish() {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return 0;
  return complain(1, fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

int run(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
    return finish();
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked);
    return finish();
  } catch (const CLI::ParseError& error) {
    return complain(2, describe(app, error));
  } catch (const ConfigError& error) {
    return complain(2, error.what());
  } catch (const Interrupted&) {
    std::fflush(stdout);
    return 130;
  } catch (const Ended& end) {
    return *end.what() ? complain(end.code(), end.what()) : end.code();
  } catch (const PeerLost& error) {
    return complain(1, error.what(), error.rank());
  } catch (const std::bad_alloc&) {
    return complain(1,
                    "out of memory: try a smaller --batch, a smaller --input or a smaller network");
  } catch (const std::exception& error) {
    return complain(1, error.what());
  }
}

}  // namespace

void print_answer(const nlohmann::json& answer) {
  fmt::print("{}\n", answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

int run_program(int argc, const char* const* argv) {
  CLI::App app("Convoy trains convolutional networks and says what it cost.", "convoy");
  app.set_version_flag("--version", "convoy " CONVOY_VERSION);
  app.require_subcommand(1);
  app.footer(kExamples);
  add_train_command(app);
  add_eval_command(app);
  add_zoo_command(app);
  add_data_command(app);
  add_bench_command(app);
  add_doctor_command(app);
  add_launch_command(app);
  add_net_command(app);
  add_replay_command(app);
  add_report_command(app);
  add_serve_command(app);
  add_study_command(app);
  add_runs_command(app);
  add_export_command(app);
  return run(app, argc, argv);
}

}  // namespace convoy
