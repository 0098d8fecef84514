#include "report/stop_run.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace convoy {
namespace {

// When a process started, in seconds since 1970; nothing where there is none.
std::optional<double> process_start_unix_s(std::int64_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid)), boot("/proc/stat");
  std::string line;
  if (!std::getline(stat, line)) return std::nullopt;
  // The name, in parentheses, may hold anything; the start is the 20th word behind it.
  std::istringstream words(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string word;
  for (int i = 0; i < 20; ++i) words >> word;
  double ticks = 0, booted_s = -1;
  std::istringstream(word) >> ticks;
  while (boot >> word)
    if (word == "btime") boot >> booted_s;
  if (booted_s < 0) return std::nullopt;
  return booted_s + ticks / double(::sysconf(_SC_CLK_TCK));
}

std::string this_host() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace

void stop_run(const RunRow& run) {
  if (run_state(run) != "running")
    throw ConfigError("the run {} is not running: it is {}", run.name, run_state(run));
  if (run.host != this_host())
    throw ConfigError("the run {} is led from {}: stop it there", run.name, run.host);
  // The number may meanwhile be another program's, which started after the run last wrote.
  constexpr double kSlack_s = 5;
  const std::optional<double> start = process_start_unix_s(run.pid);
  if (run.pid <= 1 || !start || *start > run.written_unix_s + kSlack_s)
    throw ConfigError("the run {} is not running any more", run.name);
  if (::kill(pid_t(run.pid), SIGINT) != 0)
    throw ConfigError("the run {} cannot be stopped: {}", run.name, std::strerror(errno));
}

}  // namespace convoy
