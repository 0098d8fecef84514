#include "sync/ps/client.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "sync/wire_code.h"

namespace convoy {

void send_setup(Transport& transport, int workers, int server, const ServerJob* job,
                std::span<const float> values, std::span<const NamedArena> state) {
  const auto send = [&](std::span<const std::byte> bytes) {
    if (!bytes.empty())
      transport.wait(transport.send(workers + server, tag_of(Stream::setup), bytes), kForever);
  };
  const std::string text = job ? job->to_text() : "";
  const std::int64_t length = std::int64_t(text.size());
  send(bytes_of(length));
  if (!job) return;
  send(std::as_bytes(std::span(text)));
  std::vector<float> shard(job->layout.shards[std::size_t(server)]);
  gather_shard(job->layout, server, values, shard);
  send(std::as_bytes(std::span(shard)));
  for (const NamedArena& arena : state) {
    gather_shard(job->layout, server, arena.second, shard);
    send(std::as_bytes(std::span(shard)));
  }
}

ServerClient::ServerClient(World world, const ServerLayout& layout, int workers)
    : runtime_(world.runtime),
      layout_(layout),
      workers_(workers),
      heads_in_(std::size_t(layout.servers)),
      changed_(world.runtime.make_event()),
      slices_(layout.slices.size()),
      courier_(world.transport) {
  task_ = runtime_.spawn("servers", [this] { loop(); });
}

ServerClient::~ServerClient() {
  try {
    courier_.post([this] {
      for (int server = 0; server < layout_.servers; ++server) courier_.drop(rank_of(server));
      courier_.stop();
    });
  } catch (...) {  // the rank is being killed, and the loop with it
  }
  task_.reset();
}

void ServerClient::loop() {
  try {
    for (int server = 0; server < layout_.servers; ++server) expect_server_head(server);
    courier_.run();
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    changed_->set();
  }
}

void ServerClient::wait_until(const std::function<bool()>& reached) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      if (reached()) return;
    }
    changed_->wait(kForever);
  }
}

void ServerClient::expect_server_head(int server) {
  ServerHead& head = heads_in_[std::size_t(server)];
  courier_.recv(rank_of(server), tag_of(Stream::server_head), writable_bytes_of(head),
                [this, server](const Completion&) {
                  const ServerHead came = heads_in_[std::size_t(server)];
                  expect_server_head(server);
                  if (came.kind == ServerHead::refused) throw DataError(text_in(came.reason));
                  {
                    const std::lock_guard lock(mutex_);
                    SliceState& state = slices_.at(came.slice);
                    state.head = false;
                    state.generation = came.generation;
                    state.answered_s = runtime_.now_s();
                    if (state.out.kind == WorkerHead::push)
                      statistics_.push.add(state.answered_s - state.started_s);
                    finish_slice(state);
                  }
                  changed_->set();
                });
}

void ServerClient::expect_values(std::uint32_t slice, std::span<float> into) {
  const bool rounded = !halves_.empty() && slices_[slice].out.kind == WorkerHead::push;
  std::span<std::byte> room = std::as_writable_bytes(into);
  if (rounded) {
    halves_[slice].resize(into.size());
    room = std::as_writable_bytes(std::span(halves_[slice]));
  }
  courier_.recv(rank_of(layout_.slices[slice].server), tag_of(Stream::values, slice), room,
                [this, slice, into, rounded](const Completion&) {
                  if (rounded) widen_from_bf16(halves_[slice].data(), into);
                  {
                    const std::lock_guard lock(mutex_);
                    slices_[slice].values = false;
                    finish_slice(slices_[slice]);
                  }
                  changed_->set();
                });
}

// Head and values may come in any order.
void ServerClient::finish_slice(SliceState& state) {
  if (!state.head && !state.values) statistics_.pull.add(runtime_.now_s() - state.answered_s);
}

void ServerClient::push(std::uint32_t slice, WorkerHead head, std::span<const std::byte> body,
                        std::span<float> into, std::function<void()> write) {
  {
    const std::lock_guard lock(mutex_);
    SliceState& state = slices_[slice];
    CHECK(!state.head && !state.values, "slice {} is pushed before it came back", slice);
    state.head = state.values = true;
    head.slice = slice;
    head.bytes = body.size();
    state.out = head;
  }
  courier_.post([this, slice, body, into, write = std::move(write)] {
    expect_values(slice, into);
    if (write) write();
    SliceState& state = slices_[slice];
    courier_.send_parcel(
        rank_of(layout_.slices[slice].server),
        {.priority = int(slice),
         .head_tag = tag_of(Stream::worker_head),
         .body_tag = tag_of(Stream::gradient),
         .head = bytes_of(state.out),
         .body = body,
         .started = [this, slice] { slices_[slice].started_s = runtime_.now_s(); }});
  });
}

void ServerClient::pull(std::uint32_t slice, std::span<float> into) {
  {
    const std::lock_guard lock(mutex_);
    SliceState& state = slices_[slice];
    CHECK(!state.head && !state.values, "slice {} is pulled before it came back", slice);
    state.head = state.values = true;
    state.out = {.kind = WorkerHead::pull, .slice = slice};
  }
  courier_.post([this, slice, into] {
    expect_values(slice, into);
    courier_.send(rank_of(layout_.slices[slice].server), tag_of(Stream::worker_head),
                  bytes_of(slices_[slice].out));
  });
}

std::uint32_t ServerClient::generation() {
  const std::lock_guard lock(mutex_);
  std::uint32_t oldest = slices_.front().generation;
  for (const SliceState& state : slices_) oldest = std::min(oldest, state.generation);
  return oldest;
}

void ServerClient::wait(std::uint32_t slice) {
  wait_until([&] { return !slices_[slice].head && !slices_[slice].values; });
}

void ServerClient::tell(int server, const WorkerHead& head) {
  const auto kept = std::make_shared<WorkerHead>(head);
  courier_.send(rank_of(server), tag_of(Stream::worker_head), bytes_of(*kept),
                [kept](const Completion&) {});
}

void ServerClient::rest(std::uint32_t epoch) {
  courier_.post([this, epoch] {
    for (int server = 0; server < layout_.servers; ++server)
      tell(server, {.kind = WorkerHead::rest, .epoch = epoch});
  });
}

void ServerClient::ask(const Ask& ask, std::vector<float> buffers) {
  {
    const std::lock_guard lock(mutex_);
    answered_ = false;
  }
  courier_.post([this, ask, buffers = std::move(buffers)]() mutable {
    ask_out_ = ask;
    buffers_out_ = std::move(buffers);
    courier_.recv(rank_of(0), tag_of(Stream::answer), writable_bytes_of(answer_in_),
                  [this](const Completion&) {
                    {
                      const std::lock_guard lock(mutex_);
                      answered_ = true;
                    }
                    changed_->set();
                  });
    courier_.send(rank_of(0), tag_of(Stream::ask), bytes_of(ask_out_));
    if (!buffers_out_.empty())
      courier_.send(rank_of(0), tag_of(Stream::buffers), std::as_bytes(std::span(buffers_out_)));
  });
}

Answer ServerClient::answer(std::span<float> merged) {
  wait_until([&] { return answered_; });
  const Answer came = answer_in_;
  if (came.buffers && !merged.empty())
    perform([&](const auto& done) {
      courier_.recv(rank_of(0), tag_of(Stream::buffers), std::as_writable_bytes(merged),
                    [done](const Completion&) { done(); });
    });
  return came;
}

// Starts something in the loop and waits until it calls done().
template <typename Start>
void ServerClient::perform(const Start& start) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = performed_ + 1;
  }
  const auto done = [this] {
    {
      const std::lock_guard lock(mutex_);
      ++performed_;
    }
    changed_->set();
  };
  courier_.post([&start, done] { start(done); });
  wait_until([&] { return performed_ >= number; });
}

std::string ServerClient::report(int server) {
  std::int64_t length = 0;
  std::string text;
  perform([&](const auto& done) {
    courier_.recv(rank_of(server), tag_of(Stream::state), writable_bytes_of(length),
                  [&, done, server](const Completion&) {
                    text.resize(std::size_t(length));
                    courier_.recv(rank_of(server), tag_of(Stream::state),
                                  std::as_writable_bytes(std::span(text)),
                                  [done](const Completion&) { done(); });
                  });
    tell(server, {.kind = WorkerHead::report});
  });
  return text;
}

void ServerClient::fetch_state(int server, std::size_t arena, std::span<float> shard) {
  perform([&](const auto& done) {
    courier_.recv(rank_of(server), tag_of(Stream::state), std::as_writable_bytes(shard),
                  [done](const Completion&) { done(); });
    tell(server, {.kind = WorkerHead::state, .slice = std::uint32_t(arena)});
  });
}

void ServerClient::leave() {
  courier_.post([this] {
    for (int server = 0; server < layout_.servers; ++server) {
      courier_.drop(rank_of(server));
      tell(server, {.kind = WorkerHead::bye});
    }
    courier_.stop();
  });
  task_->join();
  wait_until([] { return true; });
}

const ClientStatistics& ServerClient::statistics() {
  const std::lock_guard lock(mutex_);
  statistics_.traffic = courier_.traffic();
  return statistics_;
}

}  // namespace convoy
