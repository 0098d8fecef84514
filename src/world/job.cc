#include "world/job.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

namespace convoy {
namespace {

using nlohmann::json;

constexpr off_t kLargestFile = 16 << 20;

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// The file holds one line for the Job and, later, one for the report.
std::string read_lines(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > kLargestFile)
    return {};
  std::string text(std::size_t(status.st_size), '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  text.resize(got > 0 ? std::size_t(got) : 0);
  return text;
}

// The descriptor that the launcher named; -1 where it named none.
int job_fd() {
  const char* text = std::getenv(kJobVariable);
  if (!text) return -1;
  int fd = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, fd);
  if (error != std::errc{} || stop != end || fd < 0)
    throw ConfigError(
        "{}={} is not the number of a file descriptor: unset it, or start with "
        "`convoy launch`",
        kJobVariable, text);
  return fd;
}

void check_ranks(const Job& job) {
  const bool placed = std::ssize(job.host_of) == job.size;
  if (job.size < 1 || job.rank < 0 || job.rank >= job.size || !placed)
    throw ConfigError("rank {} of {}, with hosts for {}, cannot be", job.rank, job.size,
                      job.host_of.size());
  for (const int host : job.host_of)
    if (host < 0 || host >= std::ssize(job.hosts)) throw ConfigError("there is no host {}", host);
}

}  // namespace

std::vector<int> Job::ranks_of_host() const {
  std::vector<int> ranks;
  for (int other = 0; other < std::ssize(host_of); ++other)
    if (host_of[other] == host_of[rank]) ranks.push_back(other);
  return ranks;
}

std::string Job::to_json() const {
  return dump({{"id", id},
               {"rank", rank},
               {"size", size},
               {"hosts", hosts},
               {"host_of", host_of},
               {"transport", transport},
               {"segment_fd", segment_fd},
               {"rendezvous", rendezvous},
               {"address", address},
               {"public_key", keys.public_key},
               {"secret_key", keys.secret_key},
               {"encrypt", encrypt},
               {"heartbeat_deadline_s", heartbeat_deadline_s},
               {"cores", cores},
               {"oversubscribed", oversubscribed}});
}

Job Job::from_json(const std::string& text) {
  Job job;
  try {
    const json value = json::parse(text);
    value.at("id").get_to(job.id);
    value.at("rank").get_to(job.rank);
    value.at("size").get_to(job.size);
    value.at("hosts").get_to(job.hosts);
    value.at("host_of").get_to(job.host_of);
    value.at("transport").get_to(job.transport);
    value.at("segment_fd").get_to(job.segment_fd);
    value.at("rendezvous").get_to(job.rendezvous);
    value.at("address").get_to(job.address);
    value.at("public_key").get_to(job.keys.public_key);
    value.at("secret_key").get_to(job.keys.secret_key);
    value.at("encrypt").get_to(job.encrypt);
    value.at("heartbeat_deadline_s").get_to(job.heartbeat_deadline_s);
    value.at("cores").get_to(job.cores);
    value.at("oversubscribed").get_to(job.oversubscribed);
  } catch (const json::exception& error) {
    throw ConfigError("the description of the job cannot be read: {}", error.what());
  }
  check_ranks(job);
  return job;
}

std::optional<Job> job_of_process() {
  const int fd = job_fd();
  if (fd < 0) return std::nullopt;
  const std::string text = read_lines(fd);
  if (text.empty())
    throw ConfigError(
        "{}={}: the descriptor is not what the launcher handed over: let it pass "
        "through what stands between `convoy launch` and this program",
        kJobVariable, fd);
  return Job::from_json(text.substr(0, text.find('\n')));
}

bool report_failure(const std::string& why, int lost) noexcept {
  try {
    const int fd = job_fd();
    const std::string text = fd < 0 ? "" : read_lines(fd);
    if (text.empty()) return false;
    const std::string line = dump({{"why", why}, {"lost", lost}}) + "\n";
    const auto place = off_t(text.find('\n') + 1);
    return ::pwrite(fd, line.data(), line.size(), place) == ssize_t(line.size());
  } catch (const std::exception&) {  // the exit code tells the rest
    return false;
  }
}

FailureReport read_failure_report(int fd) {
  const std::string text = read_lines(fd);
  const std::size_t begin = text.find('\n') + 1;
  const json value = json::parse(text.begin() + std::ptrdiff_t(begin), text.end(), nullptr, false);
  if (!value.is_object()) return {};
  return {value.value("why", std::string()), value.value("lost", -1)};
}

}  // namespace convoy
