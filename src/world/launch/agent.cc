#include "world/launch/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "base/error.h"
#include "world/launch/cores.h"
#include "world/launch/frames.h"
#include "world/launch/lines.h"
#include "world/launch/process.h"
#include "world/shm/segment.h"

namespace convoy {
namespace {

// A standard stream of a rank.
struct Stream {
  FrameKind kind = FrameKind::output;
  Fd fd = {};
  LineCutter lines = {};
};

struct RankProcess {
  int rank = 0;
  pid_t pid = 0;
  Fd job = {};
  std::array<Stream, 2> streams = {};
  bool alive = true;
};

class Agent {
 public:
  explicit Agent(const AgentOptions& options)
      : options_(options), signals_({SIGCHLD, SIGTERM, SIGINT, SIGHUP}), out_(options.out) {}

  void run();

 private:
  bool receive();  // false: the launcher is gone
  void start(const Part& part);
  void start_rank(const Part& part, int place, const CoreShares& shares);
  std::vector<std::string> rank_environment(const Part& part, const CoreShares& shares, int rank,
                                            int job_fd) const;
  void wait_for_events();
  void read_stream(RankProcess& process, Stream& stream);
  void reap();
  void finish(RankProcess& process, const siginfo_t& info);
  void signal_ranks(int number);
  void end_all();
  bool any_alive() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.alive; });
  }
  void tell(FrameKind kind, int rank, std::string_view bytes) {
    out_.add(encode_frame(kind, rank, bytes));
  }

  AgentOptions options_;
  SignalQueue signals_;
  Sink out_;
  FrameReader in_;
  std::optional<shm::Segment> segment_;
  std::vector<RankProcess> ranks_;
  bool started_ = false;
  bool abandoned_ = false;  // nobody is there to tell
};

// Processes of the ranks that outlived them come to the agent as its own children.
void end_stray_children() {
  for (;;) {
    const std::string list = fmt::format("/proc/self/task/{}/children", ::getpid());
    std::ifstream children(list);
    if (!children) return;  // a kernel without that list
    for (pid_t child; children >> child;) ::kill(child, SIGKILL);
    if (::waitpid(-1, nullptr, 0) < 0) return;
  }
}

void set_default(std::map<std::string, std::string>& variables, const char* name,
                 const std::string& value) {
  if (!std::getenv(name)) variables.try_emplace(name, value);
}

std::vector<std::string> Agent::rank_environment(const Part& part, const CoreShares& shares,
                                                 int rank, int job_fd) const {
  std::map<std::string, std::string> variables = part.environment;
  variables[kJobVariable] = std::to_string(job_fd);
  variables["CONVOY_RANK"] = std::to_string(rank);  // for scripts; our own code reads the Job
  variables["CONVOY_SIZE"] = std::to_string(part.job.size);
  set_default(variables, "OMP_NUM_THREADS", std::to_string(shares.per_rank));
  if (shares.oversubscribed) {
    set_default(variables, "OMP_WAIT_POLICY", "passive");
    set_default(variables, "GOMP_SPINCOUNT", "0");
  }
  std::vector<std::string> all;
  for (const std::string& entry : own_environment())
    if (!variables.contains(entry.substr(0, entry.find('=')))) all.push_back(entry);
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  return all;
}

void Agent::start_rank(const Part& part, int place, const CoreShares& shares) {
  RankProcess process;
  Job job = part.job;
  job.rank = process.rank = part.ranks[place];
  job.cores = shares.per_rank;
  job.oversubscribed = shares.oversubscribed;
  job.segment_fd = segment_ ? segment_->fd() : -1;
  process.job = make_memory_file("convoy-job", job.to_json() + "\n");
  Pipe out = make_pipe(), err = make_pipe();
  ProcessOptions options{
      .command = part.command,
      .environment = rank_environment(part, shares, process.rank, process.job.get()),
      .folder = part.folder,
      .out = out.write.get(),
      .err = err.write.get(),
      .inherited = {process.job.get()},
      .cores = shares.of_rank[place],
      .death_signal = SIGKILL};
  if (segment_) options.inherited.push_back(segment_->fd());
  process.pid = start_process(options);
  process.streams[0] = {.kind = FrameKind::output, .fd = std::move(out.read)};
  process.streams[1] = {.kind = FrameKind::errors, .fd = std::move(err.read)};
  for (const Stream& stream : process.streams) ::fcntl(stream.fd.get(), F_SETFL, O_NONBLOCK);
  tell(FrameKind::started, process.rank, std::to_string(process.pid));
  ranks_.push_back(std::move(process));
}

void Agent::start(const Part& part) {
  started_ = true;
  try {
    const int count = int(part.ranks.size());
    const CoreShares shares =
        divide_cores(own_cores(), options_.core_limit, count, part.cores_per_rank);
    if (count <= shm::Segment::kMostRanks)
      segment_.emplace(shm::Segment::create({.ranks = count}));
    else if (part.job.transport == "shm")
      throw ConfigError(
          "{} ranks on one host are too many for transport shm, which takes {}: use "
          "--transport zmq",
          count, shm::Segment::kMostRanks);
    for (int place = 0; place < count; ++place) start_rank(part, place, shares);
    tell(FrameKind::note, 0, shares.text());
  } catch (const ConfigError& error) {
    tell(FrameKind::failed, 2, error.what());
    signal_ranks(SIGKILL);
  } catch (const std::exception& error) {
    tell(FrameKind::failed, 1, error.what());
    signal_ranks(SIGKILL);
  }
}

bool Agent::receive() {
  std::string bytes;
  if (!read_some(options_.in, bytes)) return false;
  in_.add(bytes);
  while (const std::optional<Frame> frame = in_.next()) {
    if (frame->kind == FrameKind::part && !started_)
      start(Part::decode(frame->bytes));
    else if (frame->kind == FrameKind::signal)
      signal_ranks(std::atoi(frame->bytes.c_str()));
    else
      throw TransportError("the launcher sent a frame that an agent does not know");
  }
  return true;
}

// The rank's whole process group, so that a shell around the program does not keep it alive.
void Agent::signal_ranks(int number) {
  for (const RankProcess& process : ranks_)
    if (process.alive) ::kill(-process.pid, number);
}

void Agent::read_stream(RankProcess& process, Stream& stream) {
  std::string bytes;
  if (!read_some(stream.fd.get(), bytes)) stream.fd.reset();
  const std::string lines = stream.lines.take(bytes);
  if (!lines.empty()) tell(stream.kind, process.rank, lines);
}

void Agent::finish(RankProcess& process, const siginfo_t& info) {
  // Not reaped yet: the group's number cannot have gone to anybody else.
  ::kill(-process.pid, SIGKILL);
  for (Stream& stream : process.streams) {
    // What is in the pipe, but not for ever: a process that left the group may go on writing.
    constexpr std::size_t kMostBytes = 2 << 20;
    std::string bytes;
    for (std::size_t before = 0; stream.fd && bytes.size() < kMostBytes; before = bytes.size()) {
      if (!read_some(stream.fd.get(), bytes)) stream.fd.reset();
      if (bytes.size() == before) break;
    }
    stream.fd.reset();
    std::string lines = stream.lines.take(bytes);
    lines += stream.lines.rest();
    if (!lines.empty()) tell(stream.kind, process.rank, lines);
  }
  ::waitpid(process.pid, nullptr, 0);
  process.alive = false;
  const FailureReport report = read_failure_report(process.job.get());
  const bool exited = info.si_code == CLD_EXITED;
  const End end{.pid = process.pid,
                .code = exited ? info.si_status : 0,
                .signal = exited ? 0 : info.si_status,
                .lost = report.lost,
                .why = report.why};
  process.job.reset();
  tell(FrameKind::ended, process.rank, end.encode());
}

void Agent::reap() {
  for (RankProcess& process : ranks_) {
    siginfo_t info{};
    if (process.alive &&
        ::waitid(P_PID, id_t(process.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == process.pid)
      finish(process, info);
  }
}

void Agent::end_all() {
  abandoned_ = true;
  signal_ranks(SIGKILL);
}

void Agent::wait_for_events() {
  std::vector<pollfd> fds = {{signals_.fd(), POLLIN, 0},
                             {abandoned_ ? -1 : options_.in, POLLIN, 0},
                             {out_.pending() ? out_.fd() : -1, POLLOUT, 0}};
  std::vector<std::pair<RankProcess*, Stream*>> streams;
  for (RankProcess& process : ranks_)
    for (Stream& stream : process.streams)
      if (stream.fd && !out_.full()) {
        fds.push_back({stream.fd.get(), POLLIN, 0});
        streams.emplace_back(&process, &stream);
      }
  if (::poll(fds.data(), fds.size(), -1) < 0) return;
  for (std::size_t i = 0; i < streams.size(); ++i)
    if (fds[3 + i].revents) read_stream(*streams[i].first, *streams[i].second);
  if (fds[2].revents) out_.pump();
  if (fds[1].revents && !receive()) end_all();
  for (const int number : signals_.take())
    if (number != SIGCHLD) end_all();
  reap();
}

void Agent::run() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  out_.add(kAgentHello);
  while (!abandoned_ && !started_) wait_for_events();
  while (any_alive()) wait_for_events();
  end_stray_children();
  tell(FrameKind::done, 0, "");
  while (!abandoned_ && out_.pending() && out_.error() == 0) wait_for_events();
}

}  // namespace

void run_agent(const AgentOptions& options) { Agent(options).run(); }

}  // namespace convoy
