// What the subcommands share: how they are added to the program, how they answer, and how they end.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace convoy {

// Each adds one subcommand. Its callback runs the command and throws on failure.
void add_train_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_zoo_command(CLI::App& app);
void add_data_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_doctor_command(CLI::App& app);
void add_launch_command(CLI::App& app);
void add_net_command(CLI::App& app);
void add_replay_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_serve_command(CLI::App& app);
void add_study_command(CLI::App& app);
void add_runs_command(CLI::App& app);
void add_export_command(CLI::App& app);

// The command stopped because the user asked it to: exit code 130, nothing more to say.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// The command ended with this exit code; `why`, where there is one, is its line on standard error.
class Ended : public std::exception {
 public:
  Ended(int code, std::string why) : code_(code), why_(std::move(why)) {}
  int code() const { return code_; }
  const char* what() const noexcept override { return why_.c_str(); }

 private:
  int code_;
  std::string why_;
};

// The answer of --json: one object on one line, the last of standard output.
void print_answer(const nlohmann::json& answer);

// Parses the arguments, runs the command, turns every failure into one line on standard error.
// Returns the exit code: 0, 1 (data, files, peers), 2 (usage, configuration), 130 (interrupted).
int run_program(int argc, const char* const* argv);

}  // namespace convoy
