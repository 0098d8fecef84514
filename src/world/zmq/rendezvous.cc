#include "world/zmq/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "world/zmq/gatekeeper.h"
#include "world/zmq/message.h"
#include "world/zmq/stranger_log.h"

namespace convoy {

class Rendezvous::Server {
 public:
  explicit Server(Options options);
  ~Server();

  const std::string& endpoint() const { return endpoint_; }
  std::vector<int> missing();
  std::vector<RankHello> members();
  void announce_lost(int rank, const std::string& why);
  std::optional<Sighting> last_seen(int rank);

 private:
  struct Member {
    std::optional<RankHello> hello;
    std::string line;  // the routing id of its connection
    int connection = -1;
    bool connected = false;
    bool left = false;
    std::optional<std::string> lost;
    std::optional<Position> position;
    double position_at_s = 0;
  };

  void serve();
  void take(const std::string& line, int connection, const ControlMessage& message);
  void take_hello(const std::string& line, int connection, const ControlMessage& message);
  void watch_connections();
  std::string refusal(const RankHello& hello, std::uint64_t size) const;
  void lose(int rank, const std::string& why, bool tell_launcher);
  void tell(const std::string& line, const ControlMessage& message);
  void tell_all(const ControlMessage& message, int but);
  ControlMessage positions() const;
  std::vector<int> missing_ranks() const;

  const Options options_;
  ZmqContext context_;
  Gatekeeper gatekeeper_;
  ZmqSocket socket_;
  ZmqMonitor monitor_;
  std::string endpoint_;
  StrangerLog strangers_;
  Doorbell bell_;
  std::map<std::string, int> rank_of_line_;

  std::mutex mutex_;  // guards all below
  std::vector<Member> members_;
  struct Announcement {
    int rank;
    std::string why;
  };
  std::vector<Announcement> announcements_;
  bool ending_ = false;
  std::thread thread_;
};

Rendezvous::Server::Server(Options options)
    : options_(std::move(options)),
      gatekeeper_(context_, options_.keys),
      socket_(context_, ZmqSocket::Kind::router),
      monitor_(context_, socket_),
      strangers_("rendezvous"),
      members_(options_.size) {
  socket_.serve_curve(options_.keys);
  socket_.limit_message_bytes(1 << 20);
  socket_.linger(1);
  endpoint_ = socket_.bind(fmt::format("tcp://{}:*", options_.address));
  thread_ = std::thread([this] { serve(); });
}

Rendezvous::Server::~Server() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  bell_.ring();
  thread_.join();
}

void Rendezvous::Server::serve() {
  ZmqSocket* const sockets[] = {&socket_, &monitor_.socket()};
  std::vector<ZmqMessage> parts;
  for (;;) {
    bell_.rung();
    while (socket_.recv_all(parts)) {
      const auto message = parts.size() == 2 ? decode_control(parts[1].bytes()) : std::nullopt;
      const std::lock_guard lock(mutex_);
      if (message)
        take(std::string(parts[0].text()), parts[1].connection(), *message);
      else
        strangers_.note();
    }
    {
      const std::lock_guard lock(mutex_);
      watch_connections();
      for (const Announcement& one : std::exchange(announcements_, {}))
        lose(one.rank, one.why, false);
      if (ending_) return;
    }
    zmq_sleep(sockets, bell_, kForever);
  }
}

// Who goes without having said hello was a stranger.
void Rendezvous::Server::watch_connections() {
  while (const auto event = monitor_.next()) {
    if (event->kind == ZmqMonitor::Kind::refused) strangers_.note();
    if (event->kind != ZmqMonitor::Kind::disconnected) continue;
    const auto member = std::find_if(members_.begin(), members_.end(), [&](const Member& one) {
      return one.connection == event->connection;
    });
    if (member == members_.end())
      strangers_.note();
    else
      member->connection = -1;
  }
}

void Rendezvous::Server::take(const std::string& line, int connection,
                              const ControlMessage& message) {
  if (message.kind == ControlKind::hello) return take_hello(line, connection, message);
  const auto found = rank_of_line_.find(line);
  if (found == rank_of_line_.end()) return strangers_.note();
  const int rank = found->second;
  Member& member = members_[rank];
  switch (message.kind) {
    case ControlKind::failed:
      lose(rank, message.texts.empty() ? "it failed" : message.texts[0], true);
      return tell(line, {.kind = ControlKind::heard, .rank = rank});
    case ControlKind::connected:
      member.connected = true;
      if (std::all_of(members_.begin(), members_.end(),
                      [](const Member& one) { return one.connected; }))
        tell_all({.kind = ControlKind::connected}, -1);
      return;
    case ControlKind::leaving:
      member.left = true;
      return tell(line, {.kind = ControlKind::heard, .rank = rank});
    case ControlKind::lost:  // who is lost himself has no say about others
      if (!member.lost && message.rank >= 0 && message.rank < options_.size &&
          !message.texts.empty())
        lose(message.rank, message.texts[0], true);
      return;
    case ControlKind::position:
      if (message.numbers.size() != 2 || message.texts.size() != 1) return;
      member.position = Position{.sequence = message.numbers[0], .bytes = message.numbers[1]};
      member.position->set_place(message.texts[0]);
      member.position_at_s = now_s();
      return;
    case ControlKind::where:
      return tell(line, positions());
    case ControlKind::who_is_missing: {
      ControlMessage answer{.kind = ControlKind::missing};
      for (const int one : missing_ranks()) answer.numbers.push_back(one);
      return tell(line, answer);
    }
    default:
      return;
  }
}

std::string Rendezvous::Server::refusal(const RankHello& hello, std::uint64_t size) const {
  if (hello.job_id != options_.job_id)
    return fmt::format("it serves job {}, not {}", options_.job_id, hello.job_id);
  if (size != static_cast<std::uint64_t>(options_.size) || hello.rank < 0 ||
      hello.rank >= options_.size)
    return fmt::format("rank {} of {} came to a job of {} ranks", hello.rank, size, options_.size);
  if (const auto& other = members_[hello.rank].hello)
    return fmt::format("rank {} is there already, as process {} on {}", hello.rank, other->pid,
                       other->host);
  for (const Member& member : members_)
    if (member.hello && member.hello->build != hello.build)
      return fmt::format(
          "rank {} on {} runs another build of this program than rank {} on {}; "
          "copy the same one to both",
          hello.rank, hello.host, member.hello->rank, member.hello->host);
  return "";
}

void Rendezvous::Server::take_hello(const std::string& line, int connection,
                                    const ControlMessage& message) {
  if (message.numbers.size() != 2 || message.texts.size() != 4) return strangers_.note();
  const RankHello hello{.job_id = message.texts[0],
                        .rank = message.rank,
                        .host = message.texts[1],
                        .pid = static_cast<std::int64_t>(message.numbers[1]),
                        .build = message.texts[2],
                        .endpoint = message.texts[3]};
  const std::string why = refusal(hello, message.numbers[0]);
  if (!why.empty()) {
    spdlog::warn("rendezvous: refused rank {} from {}: {}", hello.rank, hello.host, why);
    return tell(line, {.kind = ControlKind::refused, .rank = hello.rank, .texts = {why}});
  }
  Member& member = members_[hello.rank];
  member.hello = hello;
  member.line = line;
  watch_connections();  // events of an older connection with the same descriptor come before this
  member.connection = connection;
  rank_of_line_[line] = hello.rank;
  for (int rank = 0; rank < options_.size; ++rank)
    if (members_[rank].lost)
      tell(line, {.kind = ControlKind::lost, .rank = rank, .texts = {*members_[rank].lost}});
  if (!missing_ranks().empty()) return;
  ControlMessage table{.kind = ControlKind::table};
  for (const Member& one : members_) table.texts.push_back(one.hello->endpoint);
  tell_all(table, -1);
}

void Rendezvous::Server::lose(int rank, const std::string& why, bool tell_launcher) {
  if (rank < 0 || rank >= options_.size) return;
  Member& member = members_[rank];
  if (member.lost || member.left) return;
  member.lost = why;
  tell_all({.kind = ControlKind::lost, .rank = rank, .texts = {why}}, rank);
  if (tell_launcher && options_.on_lost) options_.on_lost(rank, why);
}

void Rendezvous::Server::tell(const std::string& line, const ControlMessage& message) {
  ZmqMessage address(std::as_bytes(std::span(line)));
  ZmqMessage body(encode_control(message));
  if (socket_.send(address, true)) socket_.send(body, false);
}

void Rendezvous::Server::tell_all(const ControlMessage& message, int but) {
  for (int rank = 0; rank < options_.size; ++rank)
    if (rank != but && members_[rank].hello) tell(members_[rank].line, message);
}

ControlMessage Rendezvous::Server::positions() const {
  ControlMessage answer{.kind = ControlKind::positions};
  for (const Member& member : members_) {
    const Position position = member.position.value_or(Position{});
    const double age_s = now_s() - member.position_at_s;
    answer.numbers.insert(answer.numbers.end(),
                          {member.position ? 1u : 0u, position.sequence, position.bytes,
                           member.position ? static_cast<std::uint64_t>(age_s * 1e6) : 0});
    answer.texts.emplace_back(position.place.data());
  }
  return answer;
}

std::vector<int> Rendezvous::Server::missing_ranks() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < options_.size; ++rank)
    if (!members_[rank].hello) ranks.push_back(rank);
  return ranks;
}

std::vector<int> Rendezvous::Server::missing() {
  const std::lock_guard lock(mutex_);
  return missing_ranks();
}

std::vector<RankHello> Rendezvous::Server::members() {
  const std::lock_guard lock(mutex_);
  std::vector<RankHello> found;
  for (const Member& member : members_)
    if (member.hello) found.push_back(*member.hello);
  return found;
}

void Rendezvous::Server::announce_lost(int rank, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    announcements_.push_back({rank, why});
  }
  bell_.ring();
}

std::optional<Sighting> Rendezvous::Server::last_seen(int rank) {
  const std::lock_guard lock(mutex_);
  const Member& member = members_.at(rank);
  if (!member.position) return std::nullopt;
  return Sighting{.position = *member.position, .age_s = now_s() - member.position_at_s};
}

Rendezvous::Rendezvous(Options options) : server_(std::make_unique<Server>(std::move(options))) {}
Rendezvous::~Rendezvous() = default;
const std::string& Rendezvous::endpoint() const { return server_->endpoint(); }
int Rendezvous::port() const { return std::stoi(endpoint().substr(endpoint().rfind(':') + 1)); }
std::vector<int> Rendezvous::missing() const { return server_->missing(); }
std::vector<RankHello> Rendezvous::members() const { return server_->members(); }
void Rendezvous::announce_lost(int rank, const std::string& why) {
  server_->announce_lost(rank, why);
}
std::optional<Sighting> Rendezvous::last_seen(int rank) const { return server_->last_seen(rank); }

}  // namespace convoy
