#include <unistd.h>

#include <atomic>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "world/agreement.h"
#include "world/launch/address.h"
#include "world/patience.h"
#include "world/zmq/control_link.h"
#include "world/zmq/gatekeeper.h"
#include "world/zmq/local_host.h"
#include "world/zmq/mesh.h"
#include "world/zmq/rendezvous.h"

namespace convoy {
namespace {

// Where to listen: on the way to the rendezvous, unless the job says otherwise.
std::string own_address(const Job& job) {
  if (!job.address.empty()) return job.address;
  const std::size_t begin = job.rendezvous.find("://") + 3, end = job.rendezvous.rfind(':');
  const std::string own = route_towards(job.rendezvous.substr(begin, end - begin));
  if (own.empty())
    throw TransportError(fmt::format("rank {}: no way to {}", job.rank, job.rendezvous));
  return own;
}

class ZmqTransport final : public RendezvousTransport {
 public:
  ZmqTransport(const Job& job, double timeout_s);

  int rank() const override { return job_.rank; }
  int size() const override { return job_.size; }

  Ticket send(int to, Tag tag, std::span<const std::byte> bytes) override;
  Ticket recv(int from, Tag tag, std::span<std::byte> buffer) override {
    return inbox_.recv(from, tag, buffer);
  }
  void cancel(Ticket ticket) override;
  void wake() override {
    woken_.store(true);
    bell_.ring();
  }
  void publish(const Position& position) override { control_.publish(position); }
  std::optional<Sighting> last_seen(int rank) override { return control_.last_seen(rank); }
  void close(double timeout_s) override;
  void fail(const std::string& why) override { control_.fail(why); }
  HostMemory* host_memory() override { return local_ ? &local_->memory() : nullptr; }

 protected:
  std::optional<Completion> await(std::span<const Ticket> tickets, double timeout_s,
                                  Heed heed) override;

 private:
  std::vector<int> remote_ranks() const;
  bool is_local(int rank) const { return local_ && local_->has(rank); }
  bool progress(bool thorough);
  // Sleeps and makes progress until `done` says so (true) or the time is over.
  template <typename Done>
  bool wait_until(double timeout_s, Done done);
  [[noreturn]] void miss(std::span<const Ticket> tickets, double timeout_s);

  const Job job_;
  Inbox inbox_;
  Doorbell bell_;
  std::atomic<bool> woken_ = false;
  ZmqContext context_;
  Gatekeeper gatekeeper_;
  Mesh mesh_;
  ControlLink control_;
  std::unique_ptr<LocalHost> local_;
};

ZmqTransport::ZmqTransport(const Job& job, double timeout_s)
    : job_(job),
      inbox_(job.size),
      gatekeeper_(context_, job.keys),
      mesh_(context_, job_, own_address(job), inbox_, bell_),
      control_(context_, job_, [this] { bell_.ring(); }) {
  const Patience patience(timeout_s);
  std::string host = "unknown";
  if (job.rank < static_cast<int>(job.host_of.size())) host = job.hosts.at(job.host_of[job.rank]);
  const std::vector<std::string> endpoints = control_.join({.job_id = job.id,
                                                            .rank = job.rank,
                                                            .host = host,
                                                            .pid = getpid(),
                                                            .build = program_build(),
                                                            .endpoint = mesh_.endpoint()},
                                                           timeout_s);
  if (job.segment_fd >= 0 && job.ranks_of_host().size() > 1) {
    local_ = std::make_unique<LocalHost>(job_, inbox_, bell_, mesh_, patience.left_s());
    local_->memory().wait_by([this](double barrier_timeout_s, const std::function<bool()>& done) {
      return wait_until(barrier_timeout_s, done);
    });
  }
  mesh_.connect(remote_ranks(), endpoints, control_, patience.left_s());
  control_.await_connected(patience.left_s());
}

std::vector<int> ZmqTransport::remote_ranks() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < job_.size; ++rank)
    if (rank != job_.rank && !is_local(rank)) ranks.push_back(rank);
  return ranks;
}

Ticket ZmqTransport::send(int to, Tag tag, std::span<const std::byte> bytes) {
  if (is_local(to)) return local_->send(to, tag, bytes);
  if (to != job_.rank) return mesh_.send(to, tag, bytes);
  const Ticket ticket = inbox_.matcher().open_send(to, bytes.size());
  const Inbox::Arrival arrival = inbox_.begin(to, tag, bytes.size());
  if (std::byte* place = inbox_.bytes_of(arrival); place != nullptr && !bytes.empty())
    std::memcpy(place, bytes.data(), bytes.size());
  inbox_.finish(arrival);
  inbox_.matcher().finish(ticket);
  return ticket;
}

void ZmqTransport::cancel(Ticket ticket) {
  if (local_ && local_->cancel(ticket)) return;
  if (!mesh_.cancel(ticket)) inbox_.matcher().give_up(ticket);
}

bool ZmqTransport::progress(bool thorough) {
  bool moved = local_ && local_->progress(thorough);
  if (local_ && !thorough) return moved;
  for (const Loss& loss : control_.take_losses()) mesh_.suspect(loss.rank, loss.why, true);
  moved |= mesh_.progress();
  for (const Loss& loss : mesh_.take_found_lost()) control_.report_lost(loss.rank, loss.why);
  return moved;
}

template <typename Done>
bool ZmqTransport::wait_until(double timeout_s, Done done) {
  if (local_)
    return local_->wait_until(
        timeout_s, [&](bool thorough) { return progress(thorough); }, done);
  const Patience patience(timeout_s);
  const std::vector<ZmqSocket*> sockets = mesh_.sockets();
  for (;;) {
    progress(true);
    if (done()) return true;
    if (patience.over()) return false;
    if (mesh_.may_sleep())
      zmq_sleep(sockets, bell_, std::min(patience.left_s(), mesh_.next_due_s()));
    mesh_.awake();
    bell_.rung();
  }
}

std::optional<Completion> ZmqTransport::await(std::span<const Ticket> tickets, double timeout_s,
                                              Heed heed) {
  Matcher& matcher = inbox_.matcher();
  std::optional<Completion> done = matcher.take_done(tickets);
  if (done) return done;
  const bool in_time = wait_until(timeout_s, [&] {
    if ((done = matcher.take_done(tickets))) return true;
    if (control_.rendezvous_lost()) throw TransportError("the launcher is gone");
    return heed == Heed::wake && woken_.load() && woken_.exchange(false);
  });
  if (!in_time && heed == Heed::nothing) miss(tickets, timeout_s);
  return done;
}

void ZmqTransport::miss(std::span<const Ticket> tickets, double timeout_s) {
  std::string text = fmt::format("rank {}: waited {} s for {}; last seen:", job_.rank, timeout_s,
                                 inbox_.matcher().describe(tickets.front()));
  for (int peer = 0; peer < job_.size; ++peer) {
    if (peer == job_.rank) continue;
    const std::optional<Sighting> seen = last_seen(peer);
    text +=
        fmt::format("{} rank {} {}", text.ends_with(':') ? "" : ",", peer,
                    seen ? fmt::format("in {}, {:.1f} s ago", seen->position.text(), seen->age_s)
                         : "nowhere yet");
  }
  throw DeadlineExceeded(text);
}

void ZmqTransport::close(double timeout_s) {
  const Patience patience(timeout_s);
  if (!wait_until(timeout_s, [&] { return mesh_.flushed() && (!local_ || local_->flushed()); }))
    throw DeadlineExceeded(
        fmt::format("rank {}: what it sent was not taken within {} s", job_.rank, timeout_s));
  mesh_.say_bye();
  // A peer that computes hears it later; the bytes are on their way all the same.
  wait_until(std::min(patience.left_s(), job_.heartbeat_deadline_s),
             [&] { return mesh_.bye_heard(); });
  mesh_.linger(std::max(patience.left_s(), 0.0));
  control_.leave();
  if (local_) local_->leave();
}

}  // namespace

std::unique_ptr<RendezvousTransport> join_zmq(const Job& job, double timeout_s) {
  CHECK(!job.rendezvous.empty(), "a job by ZeroMQ without a rendezvous");
  return std::make_unique<ZmqTransport>(job, timeout_s);
}

}  // namespace convoy
