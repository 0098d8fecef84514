#include "sync/ps/server.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "kernels/finite.h"

namespace convoy {
namespace {

// Receives that are posted for pushes of a worker. They may end in any order (MPI: a small one
// before a large one), but the n-th is that of the n-th head. What comes before its receive would
// be copied once more.
constexpr int kBodiesAhead = 4;

std::span<const float> floats_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}
std::span<const std::uint32_t> words_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint32_t*>(bytes.data()), bytes.size() / 4};
}
std::span<const std::byte> first_bytes(const std::vector<float>& room, std::size_t bytes) {
  return std::as_bytes(std::span(room)).first(bytes);
}

}  // namespace

ParameterServer::ParameterServer(World world, int workers)
    : world_(world),
      workers_(workers),
      index_(world.transport.rank() - workers),
      alive_(std::size_t(workers), 1),
      peers_(std::size_t(workers)),
      courier_(world.transport) {
  if (!receive_setup()) return;
  policy_ = make_policy(job_.policy, workers_);
  rooms_.emplace(job_.largest_push() / sizeof(float));
  shared_.emplace(world.transport, job_.shared_bytes);
  const std::size_t count = std::size_t(workers_);
  for (std::size_t i = 0; i < job_.layout.slices.size(); ++i)
    slices_.push_back(
        {.number = std::uint32_t(i),
         .slice = job_.layout.slices[i],
         .active = job_.layout.slices[i].server == index_,
         .version = job_.updates,
         .clocks = std::vector<Clock>(count, clock_at(std::uint32_t(job_.course.first_epoch), 0)),
         .numbers = std::vector<std::uint64_t>(count, 0),
         .sent = std::vector<Room>(count)});
  statistics_.applied_by.assign(count, 0);
}

ParameterServer::~ParameterServer() = default;

void ParameterServer::run() {
  if (slices_.empty()) return;
  courier_.on_lost([this](int rank, const std::string&) { lose(rank); });
  courier_.on_fault([this](int rank, const std::string& why) { refuse(rank, why); });
  for (int worker = 0; worker < workers_; ++worker) {
    expect_head(worker);
    for (int i = 0; i < kBodiesAhead; ++i) expect_body(worker);
  }
  expect_order();
  start_mirrors();
  courier_.run();
  if (std::none_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.left; }))
    throw TransportError("every worker is lost");
}

void ParameterServer::expect_head(int worker) {
  WorkerHead& head = peers_[std::size_t(worker)].head;
  courier_.recv(worker, tag_of(Stream::worker_head), writable_bytes_of(head),
                [this, worker](const Completion&) {
                  const WorkerHead came = peers_[std::size_t(worker)].head;
                  if (came.kind != WorkerHead::bye) expect_head(worker);
                  take_head(worker, came);
                });
}

void ParameterServer::expect_body(int worker) {
  Peer::Body& body =
      peers_[std::size_t(worker)].bodies.emplace_back(Peer::Body{.room = rooms_->take()});
  courier_.recv(worker, tag_of(Stream::gradient), std::as_writable_bytes(std::span(*body.room)),
                [this, worker, &body](const Completion& completion) {
                  body.bytes = completion.bytes;
                  body.here = true;
                  expect_body(worker);
                  match(worker);
                });
}

void ParameterServer::take_head(int worker, const WorkerHead& head) {
  if (head.protocol != kProtocol)
    return refuse(worker, "it speaks another protocol: all must run the same program");
  switch (head.kind) {
    case WorkerHead::push:
      if (head.lies_at != 0) return take_shared(worker, head);
      peers_[std::size_t(worker)].heads.push_back(head);
      match(worker);
      break;
    case WorkerHead::pull:
      if (SliceState* state = find(head.slice))
        answer(*state, worker, world_.runtime.now_s(), Answers::exact);
      else
        refuse(worker, fmt::format("there is no slice {} on server {}", head.slice, index_));
      break;
    case WorkerHead::rest:
      for (SliceState& state : slices_)
        if (state.active) state.clocks[std::size_t(worker)] = clock_at(head.epoch + 1, 0);
      consider_all();
      break;
    case WorkerHead::state:
      send_state(worker, head);
      break;
    case WorkerHead::claim:
      take_claim(worker, head);
      break;
    case WorkerHead::report:
      statistics_.traffic = courier_.traffic();
      send_text(worker, std::make_shared<std::string>(statistics_.to_json().dump()));
      break;
    case WorkerHead::bye:
      peers_[std::size_t(worker)].left = true;
      courier_.drop(worker);
      depart(worker);
      break;
    default:
      refuse(worker, fmt::format("a message of kind {} is unknown", head.kind));
  }
}

void ParameterServer::take_shared(int worker, const WorkerHead& head) {
  const std::span<const std::byte> body = shared_->body_of(worker, head.lies_at, head.bytes);
  if (body.empty()) return refuse(worker, "a gradient that is said to lie where nothing is shared");
  courier_.count_in(body.size());
  take_push({.worker = worker,
             .head = head,
             .room = {},
             .body = body,
             .arrived_s = world_.runtime.now_s()});
}

void ParameterServer::match(int worker) {
  Peer& peer = peers_[std::size_t(worker)];
  while (!peer.heads.empty() && !peer.bodies.empty() && peer.bodies.front().here) {
    Push push{.worker = worker,
              .head = peer.heads.front(),
              .room = peer.bodies.front().room,
              .body = first_bytes(*peer.bodies.front().room, peer.bodies.front().bytes),
              .arrived_s = world_.runtime.now_s()};
    peer.heads.pop_front();
    peer.bodies.pop_front();
    take_push(std::move(push));
  }
}

ParameterServer::SliceState* ParameterServer::find(std::uint32_t slice) {
  return slice < slices_.size() && slices_[slice].active ? &slices_[slice] : nullptr;
}

std::string ParameterServer::fault_of(const Push& push) const {
  const WorkerHead& head = push.head;
  if (head.slice >= slices_.size() || !slices_[head.slice].active)
    return fmt::format("a gradient for slice {}, which server {} does not have", head.slice,
                       index_);
  const ServerSlice& slice = slices_[head.slice].slice;
  const WireCode* const code = shards_[std::size_t(slice.server)]->code();
  const bool exact = job_.virtual_shards > 0;
  const std::size_t expected =
      sizeof(float) * (code    ? code->words(slice.count())
                       : exact ? exact_blocks(slice).count + head.shards * slice.count()
                               : slice.count());
  if (push.body.size() != expected || head.bytes != expected)
    return fmt::format("a gradient of {} bytes for slice {}, which has {}", push.body.size(),
                       head.slice, expected);
  if (head.mean_over == 0 || head.samples > head.mean_over)
    return fmt::format("a gradient of {} samples as a mean over {}", head.samples, head.mean_over);
  const std::span<const float> numbers = floats_of(push.body);
  if (code) {
    const std::string fault = code->fault(words_of(push.body), slice.count());
    return fault.empty() ? ""
                         : fmt::format("a gradient for slice {} that has {}", head.slice, fault);
  }
  if (!all_finite(exact ? numbers.subspan(exact_blocks(slice).count) : numbers))
    return fmt::format("a gradient for slice {} that has numbers which are not finite", head.slice);
  return {};
}

// In updates. Those of weights from a server that is lost: what was known of its updates, and those
// that were made since.
std::int64_t ParameterServer::staleness_of(const SliceState& state, const Push& push) const {
  const std::int64_t behind = push.head.term == state.term ? state.version - push.head.version
                                                           : state.known - push.head.version +
                                                                 state.version - state.taken_at;
  return std::max<std::int64_t>(behind, 0);
}

// Of what a server that is lost had completed, and told others.
bool ParameterServer::of_lost_round(const SliceState& state, const Push& push) const {
  const bool in_rounds = policy_->receive(0) == ConsistencyPolicy::Verdict::hold;
  return in_rounds && push.head.term != state.term && push.head.version < state.known;
}

void ParameterServer::take_push(Push push) {
  const std::size_t worker = std::size_t(push.worker);
  if (!alive_[worker]) return;
  if (const std::string fault = fault_of(push); !fault.empty()) return refuse(push.worker, fault);
  SliceState& state = *find(push.head.slice);
  if (!push.head.extra) state.clocks[worker] = std::max(state.clocks[worker], push.head.clock);
  if (push.head.number <= state.numbers[worker]) {  // known from a server that is lost
    ++statistics_.repeated;
    state.unanswered.push_back({push.worker, push.arrived_s});
    return consider(state);
  }
  ++statistics_.pushes;
  const std::int64_t behind = staleness_of(state, push);
  using Verdict = ConsistencyPolicy::Verdict;
  // A gradient of weights that were given up since is worth nothing.
  const bool given_up = push.head.generation != state.generation;
  const Verdict verdict =
      given_up || of_lost_round(state, push) ? Verdict::drop : policy_->receive(behind);
  if (verdict != Verdict::drop) statistics_.see_staleness(push.head.epoch, behind);
  if (push.head.extra && !given_up) {
    update_by_all(state, {&push, 1});
    return answer(state, push.worker, push.arrived_s);
  }
  if (verdict == Verdict::hold) {
    state.held_by.push_back(push.worker);
    state.held.push_back(std::move(push));
  } else {
    if (verdict == Verdict::apply)
      update_by(state, push);
    else
      ++statistics_.dropped;
    state.unanswered.push_back({push.worker, push.arrived_s});
  }
  consider(state);
}

SliceView ParameterServer::view(const SliceState& state) const {
  return {.alive = alive_, .clocks = state.clocks, .held = state.held_by};
}

void ParameterServer::consider(SliceState& state) {
  if (policy_->complete(view(state))) {
    // In the order of workers, so that the sum does not depend on who came first.
    std::sort(state.held.begin(), state.held.end(),
              [](const Push& a, const Push& b) { return a.worker < b.worker; });
    update_by_all(state, state.held);
    for (const Push& push : state.held) state.unanswered.push_back({push.worker, push.arrived_s});
    state.held.clear();
    state.held_by.clear();
  }
  for (std::size_t i = 0; i < state.unanswered.size();) {
    const Unanswered waiting = state.unanswered[i];
    if (alive_[std::size_t(waiting.worker)] && !policy_->may_answer(view(state), waiting.worker)) {
      ++i;
      continue;
    }
    state.unanswered.erase(state.unanswered.begin() + std::ptrdiff_t(i));
    answer(state, waiting.worker, waiting.since_s);
  }
}

void ParameterServer::consider_all() {
  for (SliceState& state : slices_)
    if (state.active) consider(state);
}

ServerShard::Pace ParameterServer::pace_of(const SliceState& state, double factor) const {
  const double rate =
      learning_rate(job_.schedule, state.version, job_.updates_per_epoch, job_.epochs);
  return {.rate = factor == 1 ? float(rate) : float(rate * factor), .update = state.version + 1};
}

void ParameterServer::count_update(SliceState& state, double start_s) {
  if (job_.update_s_per_byte > 0)
    world_.runtime.compute_s(job_.update_s_per_byte * double(state.slice.count() * sizeof(float)));
  ++state.version;
  ++state.edition;
  state.halves.reset();
  ++statistics_.updates;
  statistics_.weight_updates = std::max(statistics_.weight_updates, state.version - job_.updates);
  statistics_.update.add(world_.runtime.now_s() - start_s);
  if (due(state)) mirror(state);
}

void ParameterServer::count_applied(SliceState& state, const Push& push) {
  ++statistics_.applied;
  ++statistics_.applied_by[std::size_t(push.worker)];
  state.numbers[std::size_t(push.worker)] = push.head.number;
}

void ParameterServer::update_by(SliceState& state, const Push& push) {
  const double start_s = world_.runtime.now_s();
  const std::size_t worker = std::size_t(push.worker);
  const std::int64_t behind = staleness_of(state, push);
  const ServerShard::Pace pace = pace_of(state, policy_->rate_factor(behind));
  const std::span<const std::byte> gradient = push.body;
  if (const double factor = policy_->compensation(); factor > 0 && state.sent[worker]) {
    const std::span<const float> then = std::span(*state.sent[worker]).first(state.slice.count());
    shard_of(state).update_compensated(state.slice, gradient, then, float(factor), pace);
  } else {
    const ServerShard::Gradient one{.message = gradient};
    shard_of(state).update(state.slice, {&one, 1}, pace);
  }
  count_applied(state, push);
  count_update(state, start_s);
}

// Each gradient is a sum over samples, divided by mean_over: together they are divided by the
// samples that came.
void ParameterServer::update_by_all(SliceState& state, std::span<const Push> pushes) {
  const double start_s = world_.runtime.now_s();
  std::int64_t samples = 0;
  for (const Push& push : pushes) samples += push.head.samples;
  const ServerShard::Pace pace = pace_of(state, 1);
  if (job_.virtual_shards > 0) {
    std::vector<ServerShard::ExactGradient> gradients;
    const std::size_t blocks = exact_blocks(state.slice).count;
    for (const Push& push : pushes) {
      const std::span<const float> all = floats_of(push.body);
      gradients.push_back({.largest = {reinterpret_cast<const std::uint32_t*>(all.data()), blocks},
                           .shards = all.subspan(blocks)});
    }
    shard_of(state).update_exact(state.slice, gradients, pace);
  } else {
    std::vector<ServerShard::Gradient> gradients;
    for (const Push& push : pushes)
      gradients.push_back(
          {.message = push.body,
           .factor = samples > 0 ? float(double(push.head.mean_over) / double(samples)) : 1.0f});
    shard_of(state).update(state.slice, gradients, pace);
  }
  for (const Push& push : pushes) count_applied(state, push);
  count_update(state, start_s);
}

// What is mirrored before it may be seen: everything, with a replica; what is pulled when all rest,
// in any case, so that all workers go on with, and save, what no loss can take back.
void ParameterServer::answer(SliceState& state, int worker, double since_s, Answers kind) {
  if (!alive_[std::size_t(worker)]) return;
  const Unanswered to{.worker = worker, .since_s = since_s, .edition = state.edition, .kind = kind};
  const bool first_mirrored = heir_ >= 0 && (job_.replicas > 0 || kind == Answers::exact);
  if (!first_mirrored) return send_values(state, to, nullptr);
  state.waiting.push_back(to);
  release(state);
}

// What answers a push, or a pull: values of a copy, or else as they lie, or copied now where an
// update may come before they are all gone: also of what lost workers left. Rounded ones are made
// once for a version. `room` is what they lie in.
std::span<const std::byte> ParameterServer::outgoing(SliceState& state, const Unanswered& to,
                                                     Copy* copy, Room& room) {
  std::span<const float> values = shard_of(state).slice_values(state.slice);
  if (copy) values = std::span<const float>(*copy->room).first(values.size());
  room = copy ? copy->room : nullptr;
  const bool all_here = std::all_of(alive_.begin(), alive_.end(), [](char alive) { return alive; });
  const bool rounds = job_.wire == "bf16" && to.kind == Answers::push;
  const bool compensates = workers_ > 1 && policy_->compensation() > 0;
  if (!room && (compensates || (!rounds && workers_ > 1 && !(policy_->in_rounds() && all_here)))) {
    room = rooms_->take();
    std::copy(values.begin(), values.end(), room->begin());
  }
  if (compensates) state.sent[std::size_t(to.worker)] = room;
  if (!rounds)
    return std::as_bytes(room ? std::span<const float>(*room).first(values.size()) : values);
  Room& halves = copy ? copy->halves : state.halves;
  if (!halves) {
    halves = rooms_->take();
    narrow_to_bf16(values, reinterpret_cast<std::uint16_t*>(halves->data()));
  }
  room = halves;
  return first_bytes(*room, values.size() * sizeof(std::uint16_t));
}

void ParameterServer::send_values(SliceState& state, const Unanswered& to, Copy* copy) {
  const std::size_t place = std::size_t(to.worker);
  if (!alive_[place]) return;
  statistics_.wait.add(world_.runtime.now_s() - to.since_s);
  Room room;
  const std::span<const std::byte> body = outgoing(state, to, copy, room);
  const auto head = std::make_shared<ServerHead>();
  head->generation = copy ? copy->generation : state.generation;
  head->slice = state.number;
  head->version = copy ? copy->version : state.version;
  head->number = state.numbers[place];
  head->term = state.term;
  courier_.send_parcel(to.worker, {.priority = int(state.number),
                                   .head_tag = tag_of(Stream::server_head),
                                   .body_tag = tag_of(Stream::values, state.number),
                                   .head = bytes_of(*head),
                                   .body = body,
                                   .done = [head, room] {}});
}

}  // namespace convoy
