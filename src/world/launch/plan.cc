#include "world/launch/plan.h"

#include <sys/random.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "world/launch/address.h"

namespace convoy {
namespace {

std::string new_job_id() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != ssize_t(sizeof number))
    throw TransportError("the system gives no random numbers");
  return fmt::format("{:016x}", number);
}

// A word as the shell at the other end of ssh must see it.
std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

std::vector<std::string> whole_command(const HostEntry& host, const std::string& program) {
  std::vector<std::string> words = host.agent;
  if (words.empty())
    words = {"ssh",
             "-o",
             "BatchMode=yes",
             "-o",
             "ServerAliveInterval=5",
             "-o",
             "ServerAliveCountMax=3",
             host.name};
  const bool shell = std::filesystem::path(words.front()).filename() == "ssh";
  words.push_back(shell ? shell_quoted(program) : program);
  words.insert(words.end(), {"launch", "--as-agent"});
  return words;
}

void check(const LaunchOptions& options, int size) {
  if (options.command.empty())
    throw ConfigError("say what the ranks shall run: convoy launch -n 4 -- PROGRAM ARGUMENTS");
  if (size < 1 || size > kMostRanks)
    throw ConfigError("-n {}: the number of ranks must be from 1 to {}", size, kMostRanks);
  if (options.only_rank >= size)
    throw ConfigError("--only-rank {}: there are ranks 0 to {}", options.only_rank, size - 1);
}

std::string choose_transport(const LaunchOptions& options, std::size_t hosts) {
  if (options.transport.empty()) return hosts > 1 ? "zmq" : "shm";
  if (options.transport == "shm" && hosts > 1)
    throw ConfigError("--transport shm: shared memory does not reach across {} hosts: use zmq",
                      hosts);
  return options.transport;
}

void add_local_host(LaunchPlan& plan, const LaunchOptions& options) {
  plan.hosts.push_back({.name = "localhost",
                        .address = "127.0.0.1",
                        .agent = {options.program, "launch", "--as-agent"},
                        .ranks = {}});
  plan.job.host_of.assign(std::size_t(plan.job.size), 0);
  plan.address = "127.0.0.1";
}

void add_hosts(LaunchPlan& plan, const LaunchOptions& options) {
  const std::vector<int> places =
      place_servers(options.hosts, plan.job.size, options.servers, options.place);
  std::vector<HostEntry> used;  // those that have something to do
  plan.job.host_of.resize(places.size());
  for (std::size_t host = 0; host < options.hosts.size(); ++host) {
    if (std::find(places.begin(), places.end(), int(host)) == places.end()) continue;
    for (std::size_t rank = 0; rank < places.size(); ++rank)
      if (places[rank] == int(host)) plan.job.host_of[rank] = int(used.size());
    used.push_back(options.hosts[host]);
  }
  for (const HostEntry& host : used)
    plan.hosts.push_back({.name = host.name,
                          .address = host.address,
                          .agent = whole_command(host, options.program),
                          .ranks = {}});
  if (choose_transport(options, used.size()) != "zmq") return;
  plan.address = options.address.empty() ? launcher_address(used) : options.address;
}

}  // namespace

std::string LaunchPlan::on_host(int host) const {
  return hosts.size() == 1 && hosts[host].name == "localhost" ? ""
                                                              : "host " + hosts[host].name + ": ";
}

Part LaunchPlan::part(int host, const LaunchOptions& options) const {
  Part part{.job = job,
            .ranks = hosts[host].ranks,
            .command = options.command,
            .folder = options.folder,
            .environment = options.environment,
            .cores_per_rank = options.cores_per_rank};
  part.job.rank = part.ranks.front();
  part.job.address = hosts[host].address;
  return part;
}

LaunchPlan make_plan(const LaunchOptions& options) {
  int slots = 0;
  for (const HostEntry& host : options.hosts) slots += host.slots;
  LaunchPlan plan;
  plan.job.size = options.size != 0 || slots == 0 ? options.size : slots;
  check(options, plan.job.size);
  if (options.hosts.empty())
    add_local_host(plan, options);
  else
    add_hosts(plan, options);
  for (int rank = 0; rank < plan.job.size; ++rank)
    plan.hosts[plan.job.host_of[rank]].ranks.push_back(rank);
  for (const PlannedHost& host : plan.hosts) plan.job.hosts.push_back(host.name);
  plan.job.id = new_job_id();
  plan.job.transport = choose_transport(options, plan.hosts.size());
  plan.job.encrypt = options.encrypt;
  plan.job.heartbeat_deadline_s = options.heartbeat_deadline_s;
  return plan;
}

}  // namespace convoy
