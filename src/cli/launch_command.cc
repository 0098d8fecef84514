// convoy launch: the ranks of a job, on this host or on many.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "kernels/cpu.h"
#include "world/launch/agent.h"
#include "world/launch/launcher.h"
#include "world/launch/mpi_place.h"
#include "world/launch/process.h"

namespace convoy {
namespace {

constexpr const char* kExamples = R"(Examples:
  convoy launch -n 4 -- convoy net
  convoy launch -n 4 --only-rank 0 -- convoy bench allreduce --bytes 104857600 --json
  convoy launch --hosts hosts.txt -- convoy train --config run.toml
  convoy launch -n 8 --hosts hosts.txt --agent "ssh -p 2222 {}" --encrypt off -- ./program

A hosts file has one host a line:
  alpha slots=2
  beta  slots=2 address=10.0.0.2     # how the others reach it
  gamma agent="ip netns exec gamma"  # instead of ssh gamma)";

struct Flags {
  LaunchOptions launch;
  std::string hosts;
  std::string agent;
  std::string encrypt = "on";
  std::vector<std::string> environment;
  double timeout_s = 0;
  bool tag = false;
  bool no_tag = false;
  bool survive = false;
  bool as_agent = false;
};

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

// Settings of programs like ours go along to other hosts; the rest of an environment belongs to its
// host.
std::map<std::string, std::string> environment_to_pass(const std::vector<std::string>& asked) {
  std::map<std::string, std::string> passed;
  for (const std::string& entry : own_environment())
    for (const char* prefix : {"CONVOY_", "OMP_", "GOMP_"})
      if (entry.starts_with(prefix))
        passed[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
  for (const std::string& entry : asked) {
    const std::size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    const char* value = std::getenv(name.c_str());
    if (name.empty() || (equals == std::string::npos && !value))
      throw ConfigError("--env {}: no such variable: write NAME=VALUE", entry);
    passed[name] = equals == std::string::npos ? value : entry.substr(equals + 1);
  }
  return passed;
}

void complete(Flags& flags) {
  LaunchOptions& launch = flags.launch;
  if (!flags.hosts.empty()) launch.hosts = read_hosts(flags.hosts);
  if (!flags.agent.empty() && flags.hosts.empty())
    throw ConfigError("--agent says how to reach other hosts: name them with --hosts FILE");
  if (!flags.agent.empty())
    for (HostEntry& host : launch.hosts)
      if (host.agent.empty()) host.agent = agent_command(flags.agent, host.name);
  if (launch.program.empty()) launch.program = own_program();
  if (launch.folder.empty()) launch.folder = std::filesystem::current_path().string();
  launch.encrypt = flags.encrypt == "on";
  launch.needed = flags.survive ? 1 : 0;
  if (flags.timeout_s > 0) launch.timeout_s = flags.timeout_s;
  launch.environment = environment_to_pass(flags.environment);
  launch.tag_output = flags.tag || (::isatty(STDOUT_FILENO) && !flags.no_tag);
  launch.tag_errors = !flags.no_tag;
}

// mpirun or srun has started the ranks already: this process becomes one.
[[noreturn]] void become_rank(const LaunchOptions& options, const MpiPlace& place) {
  if (options.size != 0 && options.size != place.size)
    throw ConfigError("-n {}: {} has started {} ranks: leave -n away", options.size, place.starter,
                      place.size);
  if (!options.hosts.empty())
    throw ConfigError("--hosts: {} has chosen the hosts: leave --hosts away", place.starter);
  if (options.command.empty()) throw ConfigError("say what the ranks shall run after --");
  std::vector<char*> words;
  for (const std::string& word : options.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  throw ConfigError("cannot run {}: {}", options.command.front(), std::strerror(errno));
}

void run(Flags& flags, bool size_given) {
  if (flags.as_agent) return run_agent({.core_limit = cpu().cores});
  if (size_given && flags.launch.size < 1)
    throw ConfigError("-n {}: the number of ranks must be from 1 to {}", flags.launch.size,
                      kMostRanks);
  if (const std::optional<MpiPlace> place = place_from_mpi_environment())
    become_rank(flags.launch, *place);
  complete(flags);
  const LaunchResult result = launch(flags.launch);
  if (result.code != 0) throw Ended(result.code, result.reason);
}

void add_output_flags(CLI::App& command, Flags& flags) {
  command.add_flag("--tag", flags.tag,
                   "Put [rank] before every line, also where no terminal reads");
  command.add_flag("--no-tag", flags.no_tag, "No [rank] before any line")->excludes("--tag");
  command
      .add_option("--only-rank", flags.launch.only_rank,
                  "Pass on the standard output of this rank alone")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--quiet", flags.launch.quiet, "No notes about cores and signals");
}

void add_host_flags(CLI::App& command, Flags& flags) {
  command.add_option("--hosts", flags.hosts, "File that names the hosts, one a line");
  command.add_option("--agent", flags.agent,
                     "Command that runs another on a host, {} its name (default: ssh {})");
  command.add_option("--program", flags.launch.program,
                     "This program on the hosts (default: where it is here)");
  command.add_option("--folder", flags.launch.folder, "Where the ranks run (default: here)");
  command.add_option("--address", flags.launch.address,
                     "Address of this machine that the hosts reach (default: found)");
  command.add_option("--env", flags.environment, "Variable that the ranks get: NAME or NAME=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--start-timeout", flags.launch.start_timeout_s,
                  "Seconds in which every host must answer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

}  // namespace

void add_launch_command(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *app.add_subcommand("launch", "Run a program as the ranks of a job");
  CLI::Option* size = command.add_option("-n,--ranks", flags->launch.size,
                                         "Ranks (default with --hosts: one for every slot)");
  command
      .add_option("--transport", flags->launch.transport,
                  "shm (one host) or zmq (default: what reaches all)")
      ->check(CLI::IsMember({"shm", "zmq"}));
  command.add_option("--encrypt", flags->encrypt, "Whether data between hosts is encrypted")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  command
      .add_option("--cores-per-rank", flags->launch.cores_per_rank,
                  "Cores of each rank (default: all, divided)")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--heartbeat", flags->launch.heartbeat_deadline_s,
                  "Seconds of silence after which a rank is lost")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_flag("--survive", flags->survive,
                   "Go on while rank 0 does, whichever other ranks end (for train --sync ps)");
  command.add_option("--timeout", flags->timeout_s, "End the job after this many seconds")
      ->check(CLI::PositiveNumber);
  add_host_flags(command, *flags);
  add_output_flags(command, *flags);
  command.add_flag("--as-agent", flags->as_agent)->group("");
  command.add_option("command", flags->launch.command, "-- the program and its arguments");
  command.footer(kExamples);
  command.callback([flags, size] { run(*flags, size->count() > 0); });
}

}  // namespace convoy
