#include "world/launch/launcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "world/launch/host_link.h"
#include "world/launch/plan.h"
#include "world/zmq/rendezvous.h"

namespace convoy {
namespace {

// From the first sign of a failure to the order to end, while its cause is not certain.
constexpr double kSettle_s = 0.3;
// From the order to end (SIGTERM) to the end by force.
constexpr double kGrace_s = 1.0;
// The same for an interrupted job, from the end of its first rank: others may be saving their work.
constexpr double kInterruptGrace_s = 10.0;
// From the end of the ranks that are needed to the order to end, for the others.
constexpr double kRestGrace_s = 5.0;
// From force to giving up on an agent.
constexpr double kAgentGrace_s = 1.0;

// Losses that the Rendezvous notices in its own task.
class LossQueue {
 public:
  LossQueue() : bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int fd() const { return bell_.get(); }
  void add(int rank, const std::string& why) {
    const std::lock_guard lock(mutex_);
    losses_.emplace_back(rank, why);
    ::eventfd_write(bell_.get(), 1);
  }
  std::vector<std::pair<int, std::string>> take() {
    const std::lock_guard lock(mutex_);
    eventfd_t ignored;
    ::eventfd_read(bell_.get(), &ignored);
    return std::exchange(losses_, {});
  }

 private:
  Fd bell_;
  std::mutex mutex_;
  std::vector<std::pair<int, std::string>> losses_;
};

class Launcher {
 public:
  Launcher(const LaunchOptions& options, LaunchPlan plan);
  LaunchResult run();

 private:
  bool busy();
  void wait_for_events();
  double next_deadline_s() const {
    return std::min({tell_at_, settle_at_, rest_at_, kill_at_, drop_at_, start_by_, end_by_});
  }
  void pass_deadlines();
  void take(int host, const Frame& frame);
  void take_end(int rank, const End& end);
  void start_part(int host);
  void receive(int host);
  void reap();
  bool do_without_host(int host, const std::string& why);
  void interrupt(int number);
  void judge();
  void end_ranks();
  void kill_ranks();
  void broadcast(int number);
  void note(const std::string& text);
  void tell_losses();

  const LaunchOptions& options_;
  LaunchPlan plan_;
  Verdict verdict_;
  SignalQueue signals_;
  TaggedOutput out_, err_;
  LossQueue losses_;
  std::vector<std::unique_ptr<HostLink>> links_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::vector<std::string> notes_;  // how the hosts divide their cores
  int interrupted_ = 0;             // the signal that did it
  std::vector<char> ended_;         // by rank
  bool ending_ = false;
  bool killing_ = false;
  // Points in time; kForever where there is none.
  double tell_at_ = kForever, settle_at_ = kForever, rest_at_ = kForever;
  double kill_at_ = kForever, drop_at_ = kForever, start_by_ = kForever, end_by_ = kForever;
};

Launcher::Launcher(const LaunchOptions& options, LaunchPlan plan)
    : options_(options),
      plan_(std::move(plan)),
      verdict_(plan_.job.hosts, plan_.job.host_of, options.needed),
      signals_({SIGCHLD, SIGINT, SIGTERM, SIGHUP}),
      out_(STDOUT_FILENO, options.tag_output),
      err_(STDERR_FILENO, options.tag_errors),
      ended_(std::size_t(plan_.job.size), 0) {
  start_by_ = now_s() + options.start_timeout_s;
  end_by_ = now_s() + options.timeout_s;
  if (plan_.job.transport == "zmq") {
    plan_.job.keys = make_job_keys();
    rendezvous_ = std::make_unique<Rendezvous>(Rendezvous::Options{
        .job_id = plan_.job.id,
        .size = plan_.job.size,
        .keys = plan_.job.keys,
        .address = plan_.address,
        .on_lost = [this](int rank, const std::string& why) { losses_.add(rank, why); }});
    plan_.job.rendezvous = rendezvous_->endpoint();
  }
  for (const PlannedHost& host : plan_.hosts)
    links_.push_back(std::make_unique<HostLink>(host.name, host.agent));
}

void Launcher::note(const std::string& text) {
  if (!options_.quiet) tell(stderr, fmt::format("convoy: {}\n", text));
}

// Not where a rank that is needed fails as well, perhaps for the same reason.
void Launcher::tell_losses() {
  tell_at_ = kForever;
  for (const std::string& loss : verdict_.take_losses())
    if (!verdict_.failing() && interrupted_ == 0) tell(stderr, fmt::format("convoy: {}\n", loss));
}

void Launcher::broadcast(int number) {
  verdict_.sent(number);
  for (const auto& link : links_)
    if (!link->gone() && link->greeted())
      link->send(FrameKind::signal, std::to_string(number));
    else if (!link->gone())
      link->hang_up();  // nothing was started there, and nothing shall be
}

void Launcher::end_ranks() {
  if (ending_) return;
  ending_ = true;
  settle_at_ = rest_at_ = kForever;
  broadcast(SIGTERM);
  kill_at_ = now_s() + kGrace_s;
}

void Launcher::kill_ranks() {
  if (killing_) return;
  ending_ = killing_ = true;
  settle_at_ = rest_at_ = kill_at_ = kForever;
  broadcast(SIGKILL);
  drop_at_ = now_s() + kAgentGrace_s;
}

void Launcher::interrupt(int number) {
  if (interrupted_ != 0) return kill_ranks();
  interrupted_ = number;
  note(fmt::format("{} passed on to the ranks; once more kills them", signal_name(number)));
  broadcast(number);
}

// The job ends by the first failure; its cause gets some time to show.
void Launcher::judge() {
  if (verdict_.has_losses() && tell_at_ == kForever) tell_at_ = now_s() + kSettle_s;
  if (verdict_.done() && !ending_ && rest_at_ == kForever) rest_at_ = now_s() + kRestGrace_s;
  if (!verdict_.failing()) settle_at_ = kForever;
  if (!verdict_.failing() || ending_ || interrupted_ != 0) return;
  if (verdict_.decided())
    end_ranks();
  else if (settle_at_ == kForever)
    settle_at_ = now_s() + kSettle_s;
}

void Launcher::start_part(int host) {
  if (ending_ || interrupted_ != 0) return links_[host]->hang_up();
  links_[host]->send(FrameKind::part, plan_.part(host, options_).encode());
}

void Launcher::take_end(int rank, const End& end) {
  ended_[std::size_t(rank)] = 1;
  verdict_.ended(rank, end);
  if (end.failed() && rendezvous_ && (end.lost < 0 || !verdict_.needs(rank)))
    rendezvous_->announce_lost(rank, end.signal
                                         ? fmt::format("killed by {}", signal_name(end.signal))
                                         : fmt::format("ended with exit code {}", end.code));
  if (interrupted_ != 0) kill_at_ = std::min(kill_at_, now_s() + kInterruptGrace_s);
}

void Launcher::take(int host, const Frame& frame) {
  const std::vector<int>& own = plan_.hosts[host].ranks;
  const bool of_rank = frame.kind == FrameKind::started || frame.kind == FrameKind::output ||
                       frame.kind == FrameKind::errors || frame.kind == FrameKind::ended;
  if (of_rank && !std::binary_search(own.begin(), own.end(), frame.rank))
    throw TransportError(fmt::format("rank {} does not run there", frame.rank));
  switch (frame.kind) {
    case FrameKind::note:
      notes_.push_back(links_.size() == 1 ? frame.bytes
                                          : plan_.hosts[host].name + ": " + frame.bytes);
      if (notes_.size() == links_.size())
        note(fmt::format("{}; transport {}", fmt::join(notes_, "; "), plan_.job.transport));
      break;
    case FrameKind::started:
      verdict_.started(frame.rank, std::atoi(frame.bytes.c_str()));
      break;
    case FrameKind::output:
      if (options_.only_rank < 0 || options_.only_rank == frame.rank)
        out_.add(frame.rank, frame.bytes);
      break;
    case FrameKind::errors:
      err_.add(frame.rank, frame.bytes);
      break;
    case FrameKind::ended:
      take_end(frame.rank, End::decode(frame.bytes));
      break;
    case FrameKind::failed:
      verdict_.failed(plan_.on_host(host) + frame.bytes, frame.rank);
      break;
    case FrameKind::done:
      links_[host]->hang_up();
      break;
    default:
      throw TransportError("a frame that a launcher does not know");
  }
}

// An agent that does not speak as it should is ended, and with it the job.
void Launcher::receive(int host) {
  try {
    links_[host]->receive([&](const Frame& frame) { take(host, frame); });
  } catch (const std::exception& error) {
    verdict_.failed(plan_.on_host(host) + "its agent sent " + error.what(), 1);
    links_[host]->kill();
  }
}

void Launcher::reap() {
  for (int host = 0; host < int(links_.size()); ++host) {
    HostLink& link = *links_[host];
    if (link.gone()) continue;
    const bool dismissed = link.hung_up();
    link.reap([&] { receive(host); });
    if (link.gone() && !link.done() && !dismissed && !killing_ && interrupted_ == 0 &&
        !do_without_host(host, link.last_words()))
      verdict_.failed(plan_.on_host(host) + link.last_words(), 1);
  }
}

// With an agent its ranks end. False where one of them is needed, or none has ever run.
bool Launcher::do_without_host(int host, const std::string& why) {
  const std::vector<int>& ranks = plan_.hosts[host].ranks;
  if (!links_[host]->greeted() ||
      std::any_of(ranks.begin(), ranks.end(), [&](int rank) { return verdict_.needs(rank); }))
    return false;
  for (const int rank : ranks)
    if (!ended_[std::size_t(rank)]) take_end(rank, {.code = 1, .why = why});
  return true;
}

void Launcher::pass_deadlines() {
  const double now = now_s();
  if (now >= start_by_) {
    start_by_ = kForever;
    for (const auto& link : links_)
      if (!link->greeted())
        verdict_.failed(fmt::format("host {}: its agent has not answered for {:g} s", link->host(),
                                    options_.start_timeout_s),
                        1);
  }
  if (now >= end_by_) {
    end_by_ = kForever;
    verdict_.failed(fmt::format("the job took longer than --timeout {:g} s", options_.timeout_s),
                    124);
  }
  if (now >= tell_at_) tell_losses();
  if (now >= settle_at_ || now >= rest_at_) end_ranks();
  if (now >= kill_at_) kill_ranks();
  if (now >= drop_at_) {
    drop_at_ = kForever;
    for (const auto& link : links_) link->kill();
  }
}

void Launcher::wait_for_events() {
  const bool stuffed = out_.sink().full() || err_.sink().full();
  std::vector<pollfd> fds = {{signals_.fd(), POLLIN, 0},
                             {losses_.fd(), POLLIN, 0},
                             {out_.sink().pending() ? STDOUT_FILENO : -1, POLLOUT, 0},
                             {err_.sink().pending() ? STDERR_FILENO : -1, POLLOUT, 0}};
  const std::size_t first = fds.size();
  for (const auto& link : links_) {
    const bool sends = !link->hung_up() && link->to().pending();
    fds.push_back({stuffed ? -1 : link->from(), POLLIN, 0});
    fds.push_back({link->errors(), POLLIN, 0});
    fds.push_back({sends ? link->to().fd() : -1, POLLOUT, 0});
  }
  const double wait_s = std::clamp(next_deadline_s() - now_s(), 0.0, 3600.0);
  if (::poll(fds.data(), fds.size(), int(wait_s * 1000) + 1) < 0) return;
  if (fds[2].revents) out_.sink().pump();
  if (fds[3].revents) err_.sink().pump();
  for (int host = 0; host < int(links_.size()); ++host) {
    HostLink& link = *links_[host];
    const pollfd* own = &fds[first + 3 * std::size_t(host)];
    const bool greeted = link.greeted();
    if (own[0].revents) receive(host);
    if (own[1].revents) link.receive_errors();
    if (own[2].revents && !link.hung_up()) link.to().pump();
    if (!greeted && link.greeted()) start_part(host);
  }
  for (const auto& [rank, why] : losses_.take()) verdict_.lost(rank, why);
  for (const int number : signals_.take())
    if (number != SIGCHLD) interrupt(number);
  reap();
}

bool Launcher::busy() {
  const bool links =
      std::any_of(links_.begin(), links_.end(), [](const auto& link) { return !link->gone(); });
  const bool output = (out_.sink().pending() || err_.sink().pending()) && !killing_;
  return links || output;
}

LaunchResult Launcher::run() {
  while (busy()) {
    wait_for_events();
    judge();
    pass_deadlines();
    judge();
  }
  tell_losses();
  LaunchResult result = verdict_.result();
  if (interrupted_ != 0) return {128 + interrupted_, ""};
  if (result.code == 0 && out_.sink().error() != 0)
    return {1,
            fmt::format("cannot write to standard output: {}", std::strerror(out_.sink().error()))};
  return result;
}

}  // namespace

LaunchResult launch(const LaunchOptions& options) {
  return Launcher(options, make_plan(options)).run();
}

}  // namespace convoy
