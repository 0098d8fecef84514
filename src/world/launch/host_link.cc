#include "world/launch/host_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

namespace convoy {
namespace {

bool readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return fd >= 0 && ::poll(&one, 1, 0) > 0;
}

// The last line that says something.
std::string last_line(std::string text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return {};
  text.resize(end + 1);
  return text.substr(text.find_last_of("\r\n") + 1);
}

}  // namespace

HostLink::HostLink(std::string host, std::vector<std::string> command)
    : host_(std::move(host)), command_(fmt::format("{}", fmt::join(command, " "))), to_(-1) {
  Pipe in = make_pipe(), out = make_pipe(), err = make_pipe();
  pid_ = start_process({.command = std::move(command),
                        .environment = own_environment(),
                        .in = in.read.get(),
                        .out = out.write.get(),
                        .err = err.write.get(),
                        .death_signal = SIGTERM});
  to_fd_ = std::move(in.write);
  from_ = std::move(out.read);
  errors_ = std::move(err.read);
  ::fcntl(to_fd_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(from_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(errors_.get(), F_SETFL, O_NONBLOCK);
  to_ = Sink(to_fd_.get());
}

HostLink::~HostLink() {
  if (gone()) return;
  kill();
  ::waitpid(pid_, nullptr, 0);
}

void HostLink::kill() {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

void HostLink::receive(const std::function<void(const Frame&)>& take) {
  std::string bytes;
  if (!read_some(from_.get(), bytes)) from_.reset();
  frames_.add(bytes);
  if (!greeted_) greeted_ = frames_.skip_past(kAgentHello);
  while (greeted_) {
    const std::optional<Frame> frame = frames_.next();
    if (!frame) return;
    if (frame->kind == FrameKind::done) done_ = true;
    take(*frame);
  }
}

void HostLink::receive_errors() {
  constexpr std::size_t kKept = 4096;
  if (!read_some(errors_.get(), words_)) errors_.reset();
  if (words_.size() > kKept) words_.erase(0, words_.size() - kKept);
}

void HostLink::reap(const std::function<void()>& receive_rest) {
  if (gone() || ::waitpid(pid_, &status_, WNOHANG) != pid_) return;
  pid_ = 0;
  hang_up();
  while (readable(from_.get())) receive_rest();
  while (readable(errors_.get())) receive_errors();
  from_.reset();
  errors_.reset();
}

std::string HostLink::last_words() const {
  const std::string how = WIFEXITED(status_)
                              ? fmt::format("ended with exit code {}", WEXITSTATUS(status_))
                              : fmt::format("was killed by {}", signal_name(WTERMSIG(status_)));
  std::string words = last_line(words_);
  if (words.empty() && !greeted_) words = last_line(frames_.unread());
  return fmt::format("agent `{}` {}{}", command_, how, words.empty() ? "" : ": " + words);
}

}  // namespace convoy
