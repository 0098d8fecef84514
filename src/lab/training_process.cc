#include "lab/training_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "world/launch/lines.h"

namespace convoy {
namespace {

constexpr double kPatience_s = 20;  // for a training to save and leave
constexpr std::string_view kReason = "convoy: ";

class Listener {
 public:
  Listener(pid_t child, Fd out, Fd errors, const std::string& name, std::FILE* human)
      : child_(child),
        out_(std::move(out)),
        errors_(std::move(errors)),
        name_(name),
        human_(human) {}

  // Until the child has closed both streams, or did not leave when told to.
  void listen(SignalQueue& signals) {
    while (out_ || errors_) {
      pollfd fds[] = {
          {out_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
      const int wait_ms = stop_at_s_ > 0 ? int(1000 * std::max(0.0, stop_at_s_ - now_s())) + 1 : -1;
      const int ready = ::poll(fds, 3, wait_ms);
      if (ready < 0 && errno != EINTR) return;
      if (stop_at_s_ > 0 && now_s() >= stop_at_s_ && !kill_or_leave()) return;
      if (ready <= 0) continue;
      if (fds[2].revents)
        for ([[maybe_unused]] const int number : signals.take()) stop();
      if (fds[0].revents && !read_some(out_.get(), said_)) out_.reset();
      if (fds[1].revents) pass_on();
    }
  }

  bool interrupted() const { return stop_at_s_ > 0; }
  const std::string& said() const { return said_; }
  const std::string& reason() const { return reason_; }

 private:
  void stop() {
    if (stop_at_s_ == 0) {
      ::kill(child_, SIGTERM);
      stop_at_s_ = now_s() + kPatience_s;
    } else {
      stop_at_s_ = now_s();
    }
  }
  // At the deadline it is killed; once more, and whoever holds its streams is not waited for.
  bool kill_or_leave() {
    if (killed_) return false;
    killed_ = true;
    ::kill(-child_, SIGKILL);
    stop_at_s_ = now_s() + kPatience_s;
    return true;
  }
  void pass_on() {
    std::string bytes;
    const bool more = read_some(errors_.get(), bytes);
    std::string lines = cutter_.take(bytes);
    if (!more) {
      errors_.reset();
      if (const std::string rest = cutter_.rest(); !rest.empty()) lines += rest + "\n";
    }
    for (std::size_t begin = 0; begin < lines.size();) {
      const std::size_t end = lines.find('\n', begin);
      const std::string line = lines.substr(begin, end - begin);
      begin = end == std::string::npos ? lines.size() : end + 1;
      if (line.starts_with(kReason))
        reason_ = line.substr(kReason.size());
      else
        tell(human_, fmt::format("{}  {}\n", name_, line));
    }
  }

  pid_t child_;
  Fd out_, errors_;
  const std::string& name_;
  std::FILE* human_;
  LineCutter cutter_;
  std::string said_;
  std::string reason_;
  double stop_at_s_ = 0;  // when patience ends; 0: nobody asked it to stop
  bool killed_ = false;
};

nlohmann::json last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  const std::size_t end = text.rfind('\n');
  return nlohmann::json::parse(end == std::string::npos ? text : text.substr(end + 1), nullptr,
                               false);
}

}  // namespace

TrainingEnd run_training(const std::vector<std::string>& command, const std::string& name,
                         SignalQueue& signals, std::FILE* human) {
  const double start_s = now_s();
  Pipe out = make_pipe(), errors = make_pipe();
  const pid_t child = start_process({.command = command,
                                     .environment = own_environment(),
                                     .out = out.write.get(),
                                     .err = errors.write.get(),
                                     .death_signal = SIGKILL});
  out.write.reset();
  errors.write.reset();
  Listener listener(child, std::move(out.read), std::move(errors.read), name, human);
  listener.listen(signals);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  TrainingEnd end{.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                  .interrupted = listener.interrupted(),
                  .reason = listener.reason(),
                  .answer = nullptr,
                  .seconds = now_s() - start_s};
  if (end.code != 0) return end;
  end.answer = last_line(listener.said());
  if (end.answer.is_discarded()) {
    end.code = 1;
    end.reason = "it gave no answer";
  }
  return end;
}

}  // namespace convoy
