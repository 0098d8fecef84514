#include "cli/ranks.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "cli/command.h"
#include "world/inproc/inproc.h"
#include "world/job.h"
#include "world/launch/launcher.h"
#include "world/mpi/mpi_world.h"

namespace convoy {
namespace {

constexpr double kJoin_s = 60;

// This command as it was called, without the program's name.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  std::vector<std::string> words;
  std::string word;
  while (std::getline(text, word, '\0')) words.push_back(word);
  if (!words.empty()) words.erase(words.begin());
  return words;
}

void expect_size(const RankOptions& options, int size) {
  if (options.size != 0 && options.size != size)
    throw ConfigError("{0} {1}: the job has {2} ranks: leave {0} away", options.size_flag,
                      options.size, size);
}

// Every rank on a host of its own that is this machine, so that they talk over the network.
std::vector<HostEntry> own_hosts(int size) {
  std::vector<HostEntry> hosts;
  for (int rank = 0; rank < size; ++rank)
    hosts.push_back({.name = fmt::format("self{}", rank),
                     .slots = 1,
                     .address = "127.0.0.1",
                     .agent = {"env"}});
  return hosts;
}

void launch_ranks(const RankOptions& options, const std::string& transport) {
  LaunchOptions launching;
  if (!options.hosts.empty()) launching.hosts = read_hosts(options.hosts);
  launching.servers = options.servers;
  launching.place = options.hosts.empty() ? "apart" : options.place;
  const int size = options.size > 0 || !options.hosts.empty() ? options.size : options.default_size;
  launching.size = size;
  launching.needed = options.needed;
  launching.transport = transport;
  if (transport == "zmq" && options.hosts.empty()) {
    launching.hosts = own_hosts(size);
    launching.address = "127.0.0.1";
  }
  launching.program = std::filesystem::read_symlink("/proc/self/exe").string();
  launching.folder = std::filesystem::current_path().string();
  launching.command = own_arguments();
  launching.command.insert(launching.command.begin(), launching.program);
  launching.only_rank = 0;
  launching.quiet = true;
  launching.tag_errors = false;  // rank 0 speaks for all
  const LaunchResult result = launch(launching);
  if (result.code == 0) return;
  const bool own = result.code == 2 || result.code == 130;  // others are ranks that were killed
  throw Ended(own ? result.code : 1, result.reason);
}

}  // namespace

void add_rank_options(CLI::App& command, RankOptions& options) {
  command
      .add_option("-n,--ranks", options.size,
                  "Ranks to start (default 2; in a job, those of the job)")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--transport", options.transport,
                  "What carries messages between ranks started here: inproc (threads), shm or zmq")
      ->check(CLI::IsMember({"inproc", "shm", "zmq"}));
}

std::string transport_name(const RankOptions& options) {
  if (const std::optional<Job> job = job_of_process()) return job->transport;
  if (started_by_mpi()) return "mpi";
  if (!options.transport.empty()) return options.transport;
  return options.hosts.empty() ? "shm" : "zmq";
}

void run_ranks(const RankOptions& options, const RankBody& body) {
  if (options.size > kMostRanks)
    throw ConfigError("{} {}: at most {} ranks", options.size_flag, options.size, kMostRanks);
  if (const std::optional<Job> job = job_of_process()) {
    expect_size(options, job->size);
    const std::unique_ptr<Membership> membership = join(*job, kJoin_s);
    body(membership->world());
    return;
  }
  if (started_by_mpi()) {
    const std::unique_ptr<Membership> membership = join_mpi();
    expect_size(options, membership->world().transport.size());
    body(membership->world());
    return;
  }
  const std::string transport = transport_name(options);
  if (transport == "inproc")
    run_inproc(options.size == 0 ? options.default_size : options.size, {}, body);
  else
    launch_ranks(options, transport);
}

}  // namespace convoy
