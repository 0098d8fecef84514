#include "world/launch/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace convoy {
namespace {

[[noreturn]] void refuse(const char* what) {
  throw TransportError(fmt::format("{}: {}", what, std::strerror(errno)));
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

// What went wrong between fork and exec.
enum class Step : int { folder, program };
struct Failure {
  Step step;
  int error;
};

struct Launch {
  const ProcessOptions& options;
  std::vector<char*> command;
  std::vector<char*> environment;
  pid_t parent;
  int report;
};

void take_streams(const ProcessOptions& options) {
  const int sources[] = {options.in, options.out, options.err};
  for (int stream = 0; stream < 3; ++stream) {
    const int source = sources[stream] >= 0
                           ? sources[stream]
                           : ::open("/dev/null", (stream == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
    if (source == stream)
      ::fcntl(source, F_SETFD, 0);
    else
      ::dup2(source, stream);
  }
}

void pin(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t* set = CPU_ALLOC(cores.back() + 1);
  if (!set) return;
  const std::size_t bytes = CPU_ALLOC_SIZE(cores.back() + 1);
  CPU_ZERO_S(bytes, set);
  for (int core : cores) CPU_SET_S(core, bytes, set);
  ::sched_setaffinity(0, bytes,
                      set);  // a core that was taken offline meanwhile is no reason to end
}

void default_signals() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    // What the launcher's own parent ignored (nohup) stays so; what we ignore for ourselves does
    // not.
    if (::sigaction(number, nullptr, &action) != 0 || number == SIGHUP) continue;
    if (action.sa_handler != SIG_DFL) ::signal(number, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become(const Launch& launch) {
  const ProcessOptions& options = launch.options;
  ::setpgid(0, 0);
  if (options.death_signal != 0) ::prctl(PR_SET_PDEATHSIG, options.death_signal);
  if (::getppid() != launch.parent) ::_exit(127);  // the parent ended before the request
  default_signals();
  pin(options.cores);
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  take_streams(options);
  for (int fd : options.inherited) ::fcntl(fd, F_SETFD, 0);
  Failure failure{Step::folder, 0};
  if (options.folder.empty() || ::chdir(options.folder.c_str()) == 0) {
    failure.step = Step::program;
    ::execvpe(launch.command[0], launch.command.data(), launch.environment.data());
  }
  failure.error = errno;
  [[maybe_unused]] const ssize_t told = ::write(launch.report, &failure, sizeof failure);
  ::_exit(127);
}

[[noreturn]] void explain(const Failure& failure, const ProcessOptions& options) {
  if (failure.step == Step::folder)
    throw ConfigError("cannot go to the folder {}: {}", options.folder,
                      std::strerror(failure.error));
  throw ConfigError("cannot run {}: {}", options.command.front(), std::strerror(failure.error));
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) refuse("cannot make a pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

Fd make_memory_file(const char* name, const std::string& text) {
  Fd file(::memfd_create(name, MFD_CLOEXEC));
  if (!file) refuse("cannot make a file in memory");
  if (::write(file.get(), text.data(), text.size()) != ssize_t(text.size()))
    refuse("cannot write a file in memory");
  return file;
}

pid_t start_process(const ProcessOptions& options) {
  Pipe report = make_pipe();
  // The low numbers are about to become the standard streams.
  Fd told(::fcntl(report.write.get(), F_DUPFD_CLOEXEC, 3));
  report.write.reset();
  const Launch launch{options, pointers(options.command), pointers(options.environment), ::getpid(),
                      told.get()};
  const pid_t child = ::fork();
  if (child < 0) refuse("cannot start a process");
  if (child == 0) become(launch);
  ::setpgid(child, child);  // whoever of the two comes first
  told.reset();
  Failure failure{};
  ssize_t got;
  do got = ::read(report.read.get(), &failure, sizeof failure);
  while (got < 0 && errno == EINTR);
  if (got == ssize_t(sizeof failure)) {
    ::waitpid(child, nullptr, 0);
    explain(failure, options);
  }
  return child;
}

SignalQueue::SignalQueue(std::vector<int> signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (int number : signals) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    ::sigaddset(&set, number);
    blocked_.push_back(number);
  }
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  fd_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) refuse("cannot watch for signals");
}

SignalQueue::~SignalQueue() {
  take();
  sigset_t set;
  ::sigemptyset(&set);
  for (int number : blocked_) ::sigaddset(&set, number);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

std::vector<int> SignalQueue::take() {
  std::vector<int> numbers;
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) == ssize_t(sizeof info))
    numbers.push_back(int(info.ssi_signo));
  return numbers;
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name ? fmt::format("SIG{}", name) : fmt::format("SIG{}", number);
}

bool read_some(int fd, std::string& bytes) {
  char buffer[64 << 10];
  ssize_t got;
  do got = ::read(fd, buffer, sizeof buffer);
  while (got < 0 && errno == EINTR);
  if (got > 0) bytes.append(buffer, std::size_t(got));
  return got > 0 || (got < 0 && errno == EAGAIN);
}

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) all.emplace_back(*entry);
  return all;
}

}  // namespace convoy
