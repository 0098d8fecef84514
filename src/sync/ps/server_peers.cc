// How a server starts, what it does for the run as a whole, and how it takes losses.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "sync/ps/server.h"

namespace convoy {

bool ParameterServer::receive_setup() {
  Transport& transport = world_.transport;
  const auto receive = [&](std::span<std::byte> into) {
    if (!into.empty()) transport.wait(transport.recv(0, tag_of(Stream::setup), into), kForever);
  };
  std::int64_t length = 0;
  receive(writable_bytes_of(length));
  if (length == 0) return false;
  std::string text(std::size_t(length), ' ');
  receive(std::as_writable_bytes(std::span(text)));
  job_ = ServerJob::from_text(text);
  CHECK(job_.workers == workers_, "{} workers, not {}", job_.workers, workers_);
  shards_.resize(std::size_t(job_.layout.servers));
  kept_.resize(shards_.size());
  ServerShard& shard = shard_for(index_);
  receive(std::as_writable_bytes(shard.values()));
  for (const NamedArena& arena : shard.state()) receive(std::as_writable_bytes(arena.second));
  keep(index_);
  return true;
}

void ParameterServer::send_text(int worker, std::shared_ptr<std::string> text) {
  const auto length = std::make_shared<std::int64_t>(text->size());
  courier_.send(worker, tag_of(Stream::state), bytes_of(*length), [length](const Completion&) {});
  courier_.send(worker, tag_of(Stream::state), std::as_bytes(std::span(*text)),
                [text](const Completion&) {});
}

void ParameterServer::send_state(int worker, const WorkerHead& head) {
  if (head.shard >= shards_.size() || !shards_[head.shard])
    return refuse(worker, fmt::format("there is no shard {} on server {}", head.shard, index_));
  const std::vector<NamedArena> state = shards_[head.shard]->state();
  if (head.slice >= state.size())
    return refuse(worker, fmt::format("there is no state {} of the optimizer", head.slice));
  courier_.send(worker, tag_of(Stream::state), std::as_bytes(state[head.slice].second));
}

void ParameterServer::refuse(int worker, const std::string& why) {
  if (worker >= workers_) throw TransportError(why);  // another server: our own bug
  if (!alive_[std::size_t(worker)]) return;
  ++statistics_.refused;
  const auto head = std::make_shared<ServerHead>();
  head->kind = ServerHead::refused;
  set_text(head->reason, fmt::format("server {} refuses worker {}: {}", index_, worker, why));
  courier_.drop(worker);
  courier_.send(worker, tag_of(Stream::server_head), bytes_of(*head), [head](const Completion&) {});
  depart(worker);
}

void ParameterServer::lose(int rank) {
  if (rank >= workers_) return lose_server(rank - workers_);
  if (!alive_[std::size_t(rank)]) return;
  ++statistics_.lost_workers;
  depart(rank);
}

// Nobody waits for it any more.
void ParameterServer::depart(int worker) {
  alive_[std::size_t(worker)] = 0;
  consider_all();
  tell_accounts();
  if (std::any_of(alive_.begin(), alive_.end(), [](char alive) { return alive; })) return;
  leave_servers();
  courier_.stop();
}

void ParameterServer::expect_order() {
  courier_.recv(0, tag_of(Stream::order), writable_bytes_of(order_), [this](const Completion&) {
    const Order came = order_;
    expect_order();
    obey(came);
  });
}

// Each server keeps, and goes back to, its own copy of what another would have to give up.
void ParameterServer::keep(int server) {
  if (!job_.course.guard) return;
  const std::span<float> values = shards_[std::size_t(server)]->values();
  kept_[std::size_t(server)].assign(values.begin(), values.end());
}

void ParameterServer::obey(const Order& order) {
  if (order.kind == Order::keep) {
    for (int server = 0; server < int(shards_.size()); ++server)
      if (shards_[std::size_t(server)]) keep(server);
    return;
  }
  policy_ = make_policy(text_in(order.policy), workers_);
  for (SliceState& state : slices_)
    if (shards_[std::size_t(state.slice.server)] && state.generation < order.generation)
      go_back(state, order.generation);
}

void ParameterServer::go_back(SliceState& state, std::uint32_t generation) {
  const std::size_t offset = state.slice.offset, count = state.slice.count();
  const std::vector<float>& kept = kept_[std::size_t(state.slice.server)];
  if (kept.empty()) return;  // of a copy that has not come yet
  std::copy_n(kept.begin() + std::ptrdiff_t(offset), count,
              shard_of(state).slice_values(state.slice).begin());
  for (const NamedArena& arena : shard_of(state).state())
    std::fill_n(arena.second.begin() + std::ptrdiff_t(offset), count, 0.0f);
  state.generation = generation;
  state.halves.reset();
  if (!state.active) return;
  ++state.edition;
  mirror(state);
  for (const Push& push : state.held) {
    ++statistics_.dropped;
    state.unanswered.push_back({push.worker, push.arrived_s});
  }
  state.held.clear();
  state.held_by.clear();
  consider(state);
}

}  // namespace convoy
