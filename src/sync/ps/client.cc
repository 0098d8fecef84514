#include "sync/ps/client.h"

#include <fmt/format.h>

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

ServerClient::ServerClient(World world, const ServerJob& job)
    : runtime_(world.runtime),
      layout_(job.layout),
      workers_(job.workers),
      mirrors_(job.mirrors()),
      shared_(world.transport, job.shared_bytes),
      succession_(job.layout.servers),
      heads_in_(std::size_t(layout_.servers)),
      changed_(world.runtime.make_event()),
      slices_(layout_.slices.size()),
      accounts_(std::size_t(layout_.servers), 0),
      courier_(world.transport) {
  for (SliceState& state : slices_) {
    state.clock = state.told = clock_at(std::uint32_t(job.course.first_epoch), 0);
    state.version = job.updates;
  }
  if (world.transport.rank() == 0) leader_ = std::make_unique<Leader>(courier_, job);
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
    courier_.on_lost([this](int rank, const std::string& why) { lose(rank, why); });
    for (int server = 0; server < layout_.servers; ++server) expect_server_head(server);
    if (leader_) leader_->start();
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
                    state.coming = came;
                    state.generation = came.generation;
                    state.answered_s = runtime_.now_s();
                    if (state.out.kind == WorkerHead::push)
                      statistics_.push.add(state.answered_s - state.started_s);
                    finish_slice(state);
                  }
                  changed_->set();
                });
}

void ServerClient::expect_values(std::uint32_t slice) {
  const SliceState& state = slices_[slice];
  const bool rounded = !halves_.empty() && state.out.kind == WorkerHead::push;
  std::span<std::byte> room = std::as_writable_bytes(state.into);
  if (rounded) {
    halves_[slice].resize(state.into.size());
    room = std::as_writable_bytes(std::span(halves_[slice]));
  }
  courier_.recv(holder_of(slice), tag_of(Stream::values, slice), room,
                [this, slice, into = state.into, rounded](const Completion&) {
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
  if (state.head || state.values) return;
  state.sent = false;
  state.version = state.coming.version;
  state.term = state.coming.term;
  state.applied = state.coming.number;
  statistics_.pull.add(runtime_.now_s() - state.answered_s);
}

void ServerClient::push(std::uint32_t slice, WorkerHead head, std::span<const std::byte> body,
                        std::span<float> into, std::function<void()> write) {
  {
    const std::lock_guard lock(mutex_);
    SliceState& state = slices_[slice];
    CHECK(!state.head && !state.values, "slice {} is pushed before it came back", slice);
    state.head = state.values = true;
    if (!head.extra)
      state.clock = epoch_of(state.clock) == head.epoch ? state.clock + 1 : clock_at(head.epoch, 1);
    head.slice = slice;
    head.bytes = body.size();
    head.number = state.out.number + 1;
    head.clock = state.clock;
    head.version = state.version;
    head.term = state.term;
    state.out = head;
    state.body = body;
    state.into = into;
  }
  courier_.post([this, slice, write = std::move(write)] {
    if (write) write();
    send(slice);
  });
}

void ServerClient::pull(std::uint32_t slice, std::span<float> into) {
  {
    const std::lock_guard lock(mutex_);
    SliceState& state = slices_[slice];
    CHECK(!state.head && !state.values, "slice {} is pulled before it came back", slice);
    state.head = state.values = true;
    state.out = {.kind = WorkerHead::pull, .slice = slice, .number = state.out.number};
    state.into = into;
  }
  courier_.post([this, slice] { send(slice); });
}

// In the loop: what the slice's state says is wanted.
void ServerClient::send(std::uint32_t slice) {
  SliceState& state = slices_[slice];
  state.sent = true;
  state.told = std::max(state.told, state.out.clock);
  expect_values(slice);
  if (state.out.kind == WorkerHead::pull)
    return courier_.send(holder_of(slice), tag_of(Stream::worker_head), bytes_of(state.out));
  state.out.lies_at = shared_.place_for(holder_of(slice), state.body);
  if (state.out.lies_at != 0) {
    state.started_s = runtime_.now_s();
    courier_.count_out(state.body.size());
    return courier_.send(holder_of(slice), tag_of(Stream::worker_head), bytes_of(state.out));
  }
  courier_.send_parcel(holder_of(slice),
                       {.priority = int(slice),
                        .head_tag = tag_of(Stream::worker_head),
                        .body_tag = tag_of(Stream::gradient),
                        .head = bytes_of(state.out),
                        .body = state.body,
                        .started = [this, slice] { slices_[slice].started_s = runtime_.now_s(); }});
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
  {
    const std::lock_guard lock(mutex_);
    for (SliceState& state : slices_) state.clock = clock_at(epoch + 1, 0);
  }
  courier_.post([this, epoch] {
    for (SliceState& state : slices_) state.told = clock_at(epoch + 1, 0);
    for (int server = 0; server < layout_.servers; ++server)
      if (!succession_.lost(server)) tell(server, {.kind = WorkerHead::rest, .epoch = epoch});
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
    courier_.recv(0, tag_of(Stream::answer), writable_bytes_of(answer_in_),
                  [this](const Completion&) {
                    {
                      const std::lock_guard lock(mutex_);
                      answered_ = true;
                    }
                    changed_->set();
                  });
    courier_.send(0, tag_of(Stream::ask), bytes_of(ask_out_));
    if (!buffers_out_.empty())
      courier_.send(0, tag_of(Stream::buffers), std::as_bytes(std::span(buffers_out_)));
  });
}

Answer ServerClient::answer(std::span<float> merged) {
  wait_until([&] { return answered_; });
  const Answer came = answer_in_;
  bool asked = false;
  if (came.buffers && !merged.empty())
    perform([&](const auto& done) {
      if (std::exchange(asked, true)) return;
      courier_.recv(0, tag_of(Stream::buffers), std::as_writable_bytes(merged),
                    [done](const Completion&) { done(); });
    });
  return came;
}

// Starts something in the loop and waits until it calls done(). It is started again when a server
// is lost, of which nothing is open any more.
template <typename Start>
void ServerClient::perform(const Start& start) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = performed_ + 1;
  }
  const auto done = [this] {
    request_ = {};
    {
      const std::lock_guard lock(mutex_);
      ++performed_;
    }
    changed_->set();
  };
  courier_.post([this, &start, done] {
    request_ = [&start, done] { start(done); };
    start(done);
  });
  wait_until([&] { return performed_ >= number; });
}

std::vector<std::string> ServerClient::figures() {
  CHECK(leader_, "figures of all workers are with worker 0");
  std::vector<std::string> all;
  perform([&](const auto& done) {
    all = leader_->figures();
    done();
  });
  return all;
}

std::string ServerClient::report(int server) {
  std::int64_t length = 0;
  std::string text;
  bool asked = false;
  perform([&](const auto& done) {
    if (succession_.lost(server)) {
      text.clear();
      return done();
    }
    if (std::exchange(asked, true)) return;
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
  int asked = -1;
  perform([&](const auto& done) {
    const int holder = succession_.holder(server);
    if (std::exchange(asked, holder) == holder) return;
    courier_.recv(rank_of(holder), tag_of(Stream::state), std::as_writable_bytes(shard),
                  [done](const Completion&) { done(); });
    tell(
        holder,
        {.kind = WorkerHead::state, .slice = std::uint32_t(arena), .shard = std::uint32_t(server)});
  });
}

void ServerClient::leave() {
  courier_.post([this] {
    leaving_ = true;
    for (int server = 0; server < layout_.servers; ++server) {
      if (succession_.lost(server)) continue;
      courier_.drop(rank_of(server));
      tell(server, {.kind = WorkerHead::bye});
    }
    if (leader_) return leader_->await_all_gone([this] { courier_.stop(); });
    ask_out_ = {.kind = Ask::bye};
    courier_.send(0, tag_of(Stream::ask), bytes_of(ask_out_));
    courier_.stop();
  });
  task_->join();
  wait_until([] { return true; });
}

ClientStatistics ServerClient::statistics() {
  const std::lock_guard lock(mutex_);
  ClientStatistics now = statistics_;
  now.traffic = courier_.traffic();
  return now;
}

}  // namespace convoy
