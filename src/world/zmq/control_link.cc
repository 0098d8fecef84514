#include "world/zmq/control_link.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

#include "base/clock.h"
#include "world/patience.h"

namespace convoy {
namespace {

constexpr double kPositionEvery_s = 0.1;
constexpr double kAnswer_s = 1;
constexpr double kPositionAnswer_s = 0.25;

ZmqSocket control_socket(ZmqContext& context, const Job& job) {
  ZmqSocket socket(context, ZmqSocket::Kind::dealer);
  socket.use_curve(job.keys);
  socket.heartbeat(job.heartbeat_deadline_s);
  socket.never_reconnect();
  socket.linger(kAnswer_s);
  return socket;
}

}  // namespace

ControlLink::ControlLink(ZmqContext& context, const Job& job, std::function<void()> ring)
    : rank_(job.rank),
      size_(job.size),
      endpoint_(job.rendezvous),
      ring_(std::move(ring)),
      socket_(control_socket(context, job)),
      monitor_(context, socket_),
      seen_(job.size) {
  socket_.connect(endpoint_);
  thread_ = std::thread([this] { serve(); });
}

ControlLink::~ControlLink() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  bell_.ring();
  thread_.join();
}

void ControlLink::serve() {
  ZmqSocket* const sockets[] = {&socket_, &monitor_.socket()};
  std::vector<ZmqMessage> parts;
  for (;;) {
    bell_.rung();
    while (socket_.recv_all(parts)) {
      const auto message = parts.size() == 1 ? decode_control(parts[0].bytes()) : std::nullopt;
      if (message) take(*message);
    }
    while (const auto event = monitor_.next()) {
      if (event->kind == ZmqMonitor::Kind::accepted) continue;
      const std::lock_guard lock(mutex_);
      rendezvous_lost_ = true;
      if (event->kind == ZmqMonitor::Kind::refused)
        refusal_ = "it does not know this job's key, or is no rendezvous";
      changed_.notify_all();
      ring_();
    }
    const double pause_s = send_waiting();
    if (pause_s < 0) return;
    zmq_sleep(sockets, bell_, pause_s);
  }
}

double ControlLink::send_waiting() {
  const std::lock_guard lock(mutex_);
  double pause_s = kForever;
  if (unsent_) {
    const double now = now_s();
    if (ending_ || now >= last_sent_s_ + kPositionEvery_s) {
      outbox_.push_back({.kind = ControlKind::position,
                         .rank = rank_,
                         .numbers = {unsent_->sequence, unsent_->bytes},
                         .texts = {unsent_->place.data()}});
      unsent_.reset();
      last_sent_s_ = now;
    } else {
      pause_s = last_sent_s_ + kPositionEvery_s - now;
    }
  }
  for (; !outbox_.empty(); outbox_.pop_front()) {
    ZmqMessage part(encode_control(outbox_.front()));
    socket_.send(part, false);
  }
  return ending_ ? -1 : pause_s;
}

void ControlLink::take(const ControlMessage& message) {
  const std::lock_guard lock(mutex_);
  switch (message.kind) {
    case ControlKind::table:
      if (message.texts.size() == static_cast<std::size_t>(size_)) table_ = message.texts;
      break;
    case ControlKind::connected:
      all_connected_ = true;
      break;
    case ControlKind::refused:
      if (!message.texts.empty()) refusal_ = message.texts[0];
      break;
    case ControlKind::lost:
      if (message.rank < 0 || message.rank >= size_ || message.texts.empty()) return;
      losses_.push_back({message.rank, message.texts[0]});
      ring_();
      break;
    case ControlKind::heard:
      ++heard_;
      break;
    case ControlKind::missing:
      missing_ = message.numbers;
      break;
    case ControlKind::positions:
      take_positions(message);
      break;
    default:
      return;
  }
  changed_.notify_all();
}

void ControlLink::take_positions(const ControlMessage& message) {
  const std::size_t size = seen_.size();
  if (message.numbers.size() != 4 * size || message.texts.size() != size) return;
  for (std::size_t rank = 0; rank < size; ++rank) {
    const std::uint64_t* numbers = &message.numbers[4 * rank];
    if (numbers[0] == 0) continue;
    Seen seen{.position = {.sequence = numbers[1], .bytes = numbers[2]},
              .at_s = now_s() - 1e-6 * static_cast<double>(numbers[3])};
    seen.position.set_place(message.texts[rank]);
    seen_[rank] = seen;
  }
  ++answers_;
}

void ControlLink::post(ControlMessage message) {
  {
    const std::lock_guard lock(mutex_);
    outbox_.push_back(std::move(message));
  }
  bell_.ring();
}

std::vector<std::string> ControlLink::join(const RankHello& hello, double timeout_s) {
  post({.kind = ControlKind::hello,
        .rank = hello.rank,
        .numbers = {static_cast<std::uint64_t>(size_), static_cast<std::uint64_t>(hello.pid)},
        .texts = {hello.job_id, hello.host, hello.build, hello.endpoint}});
  const Patience patience(timeout_s);
  std::unique_lock lock(mutex_);
  for (;;) {
    check_joining();
    if (!table_.empty()) return table_;
    if (!patience.wait(changed_, lock) && patience.over())
      throw TransportError(fmt::format("rank {}: after {} s at the rendezvous {}, {}", rank_,
                                       timeout_s, endpoint_, missing_ranks(lock)));
  }
}

void ControlLink::check_joining() {
  if (!refusal_.empty())
    throw TransportError(
        fmt::format("rank {}: the rendezvous at {} refused: {}", rank_, endpoint_, refusal_));
  if (!losses_.empty()) throw PeerLost(losses_[0].rank, losses_[0].why);
  if (rendezvous_lost_)
    throw TransportError(fmt::format("rank {}: no rendezvous at {}", rank_, endpoint_));
}

void ControlLink::await_connected(double timeout_s) {
  post({.kind = ControlKind::connected, .rank = rank_});
  const Patience patience(timeout_s);
  std::unique_lock lock(mutex_);
  while (!all_connected_) {
    check_joining();
    if (!patience.wait(changed_, lock) && patience.over())
      throw TransportError(
          fmt::format("rank {}: some ranks found no connection with each other", rank_));
  }
}

std::string ControlLink::missing_ranks(std::unique_lock<std::mutex>& lock) {
  outbox_.push_back({.kind = ControlKind::who_is_missing, .rank = rank_});
  bell_.ring();
  const Patience patience(kAnswer_s);
  while (!missing_ && patience.wait(changed_, lock)) {
  }
  if (!missing_) return "it does not answer";
  if (missing_->empty()) return "all ranks have come but this one got no answer";
  return fmt::format("rank{} {} {} not come", missing_->size() > 1 ? "s" : "",
                     fmt::join(*missing_, ", "), missing_->size() > 1 ? "have" : "has");
}

std::vector<Loss> ControlLink::take_losses() {
  const std::lock_guard lock(mutex_);
  return std::exchange(losses_, {});
}

bool ControlLink::rendezvous_lost() {
  const std::lock_guard lock(mutex_);
  return rendezvous_lost_;
}

void ControlLink::report_lost(int rank, const std::string& why) {
  post({.kind = ControlKind::lost, .rank = rank, .texts = {why}});
}

bool ControlLink::post_and_await_answer(ControlMessage message) {
  std::unique_lock lock(mutex_);
  const int before = heard_;
  outbox_.push_back(std::move(message));
  bell_.ring();
  const Patience patience(kAnswer_s);
  while (heard_ == before && !rendezvous_lost_)
    if (!patience.wait(changed_, lock)) break;
  return heard_ != before;
}

void ControlLink::fail(const std::string& why) {
  post_and_await_answer({.kind = ControlKind::failed, .rank = rank_, .texts = {why}});
}

void ControlLink::leave() { post_and_await_answer({.kind = ControlKind::leaving, .rank = rank_}); }

void ControlLink::publish(const Position& position) {
  {
    const std::lock_guard lock(mutex_);
    seen_[rank_] = Seen{position, now_s()};
    const bool waiting = unsent_.has_value();
    unsent_ = position;
    if (waiting) return;  // the thread knows already
  }
  bell_.ring();
}

std::optional<Sighting> ControlLink::last_seen(int rank) {
  std::unique_lock lock(mutex_);
  if (rank != rank_ && now_s() > asked_at_s_ + kPositionEvery_s && !rendezvous_lost_) {
    const int before = answers_;
    outbox_.push_back({.kind = ControlKind::where, .rank = rank_});
    bell_.ring();
    const Patience patience(kPositionAnswer_s);
    while (answers_ == before && patience.wait(changed_, lock)) {
    }
    asked_at_s_ = now_s();
  }
  const std::optional<Seen>& seen = seen_[rank];
  if (!seen) return std::nullopt;
  return Sighting{.position = seen->position, .age_s = now_s() - seen->at_s};
}

}  // namespace convoy
