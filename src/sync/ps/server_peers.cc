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
  shard_.emplace(job_, index_);
  receive(std::as_writable_bytes(shard_->values()));
  for (const NamedArena& arena : shard_->state()) receive(std::as_writable_bytes(arena.second));
  return true;
}

void ParameterServer::send_text(int worker, std::shared_ptr<std::string> text) {
  const auto length = std::make_shared<std::int64_t>(text->size());
  courier_.send(worker, tag_of(Stream::state), bytes_of(*length), [length](const Completion&) {});
  courier_.send(worker, tag_of(Stream::state), std::as_bytes(std::span(*text)),
                [text](const Completion&) {});
}

void ParameterServer::send_state(int worker, std::size_t arena) {
  const std::vector<NamedArena> state = shard_->state();
  if (arena >= state.size())
    return refuse(worker, fmt::format("there is no state {} of the optimizer", arena));
  courier_.send(worker, tag_of(Stream::state), std::as_bytes(state[arena].second));
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
  if (coordinator_) {
    coordinator_->lost(worker, why);
    tell_workers();
  }
}

void ParameterServer::lose(int rank, const std::string& why) {
  const bool serving = std::any_of(alive_.begin(), alive_.end(), [](char alive) { return alive; });
  if (rank >= workers_ && serving) throw PeerLost(rank, fmt::format("a server: {}", why));
  if (rank >= workers_) return;
  if (!alive_[std::size_t(rank)]) return;
  ++statistics_.lost_workers;
  depart(rank);
  if (!coordinator_) return;
  coordinator_->lost(rank, why);
  tell_workers();
}

// Nobody waits for it any more.
void ParameterServer::depart(int worker) {
  alive_[std::size_t(worker)] = 0;
  consider_all();
  if (std::any_of(alive_.begin(), alive_.end(), [](char alive) { return alive; })) return;
  if (coordinator_) send_order({.kind = Order::end});
  courier_.stop();
}

void ParameterServer::expect_ask(int worker) {
  Ask& ask = peers_[std::size_t(worker)].ask;
  courier_.recv(worker, tag_of(Stream::ask), writable_bytes_of(ask),
                [this, worker](const Completion&) {
                  const Ask came = peers_[std::size_t(worker)].ask;
                  expect_ask(worker);
                  take_ask(worker, came);
                });
}

void ParameterServer::take_ask(int worker, const Ask& ask) {
  if (ask.kind != Ask::arrive || job_.buffers == 0) {
    coordinator_->ask(worker, ask);
    tell_workers();
    return;
  }
  const auto buffers = std::make_shared<std::vector<float>>(job_.buffers);
  courier_.recv(worker, tag_of(Stream::buffers), std::as_writable_bytes(std::span(*buffers)),
                [this, worker, ask, buffers](const Completion&) {
                  coordinator_->ask(worker, ask, *buffers);
                  tell_workers();
                });
}

void ParameterServer::tell_workers() {
  for (const auto& [worker, answer] : coordinator_->take_answers()) {
    if (!alive_[std::size_t(worker)]) continue;
    const auto kept = std::make_shared<Answer>(answer);
    courier_.send(worker, tag_of(Stream::answer), bytes_of(*kept), [kept](const Completion&) {});
    if (!answer.buffers || job_.buffers == 0) continue;
    const auto merged = std::make_shared<std::vector<float>>(coordinator_->merged().begin(),
                                                             coordinator_->merged().end());
    courier_.send(worker, tag_of(Stream::buffers), std::as_bytes(std::span(*merged)),
                  [merged](const Completion&) {});
  }
  for (const Order& order : coordinator_->take_orders()) {
    send_order(order);
    obey(order);
  }
}

void ParameterServer::send_order(const Order& order) {
  const auto kept = std::make_shared<Order>(order);
  for (int server = 1; server < job_.layout.servers; ++server)
    courier_.send(workers_ + server, tag_of(Stream::order), bytes_of(*kept),
                  [kept](const Completion&) {});
}

void ParameterServer::expect_order() {
  courier_.recv(workers_, tag_of(Stream::order), writable_bytes_of(order_),
                [this](const Completion&) {
                  const Order came = order_;
                  if (came.kind == Order::end) return;
                  expect_order();
                  obey(came);
                });
}

void ParameterServer::obey(const Order& order) {
  const std::span<float> values = shard_->values();
  if (order.kind == Order::keep) {
    kept_.assign(values.begin(), values.end());
    return;
  }
  std::copy(kept_.begin(), kept_.end(), values.begin());
  for (const NamedArena& arena : shard_->state())
    std::fill(arena.second.begin(), arena.second.end(), 0.0f);
  generation_ = order.generation;
  policy_ = make_policy(text_in(order.policy), workers_);
  for (SliceState& state : slices_) {
    for (const Push& push : state.held) {
      ++statistics_.dropped;
      state.unanswered.push_back({push.worker, push.arrived_s});
    }
    state.held.clear();
    state.held_by.clear();
    state.halves.reset();
  }
  consider_all();
}

}  // namespace convoy
