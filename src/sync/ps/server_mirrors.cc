// How the slices of a server outlive it. Each server sends copies of what it keeps to the next one
// that is not lost, its heir: with a replica after every update, and answers wait until the copy
// has arrived; otherwise every so many updates, and nobody waits. At most one copy of a slice is
// under way; updates that come meanwhile go with the next.
//
// When a server is lost, its heir has it from the transport, or from a worker that claims a slice.
// It then keeps those slices itself. Workers send again what was not answered; a push whose number
// the copy has is not applied twice. Whoever was taken over from gets no receipt for its copies any
// more, so that with a replica it answers nobody, should it still be there.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sync/ps/server.h"

namespace convoy {
namespace {

template <typename Number>
std::size_t floats_in(const std::vector<Number>& numbers) {
  return numbers.size() * sizeof(Number) / sizeof(float);
}

// Copies between a room and what lies behind one another in it.
class RoomWalk {
 public:
  explicit RoomWalk(float* at) : at_(at) {}
  template <typename Number>
  void write(std::span<const Number> from) {
    std::memcpy(at_, from.data(), from.size_bytes());
    at_ += from.size_bytes() / sizeof(float);
  }
  template <typename Number>
  void read(std::span<Number> to) {
    std::memcpy(to.data(), at_, to.size_bytes());
    at_ += to.size_bytes() / sizeof(float);
  }

 private:
  float* at_;
};

}  // namespace

ServerShard& ParameterServer::shard_for(int server) {
  std::unique_ptr<ServerShard>& shard = shards_[std::size_t(server)];
  if (!shard) shard = std::make_unique<ServerShard>(job_, server);
  return *shard;
}

void ParameterServer::start_mirrors() {
  succession_.emplace(job_.layout.servers);
  if (!job_.mirrors()) return;
  const std::size_t arenas = 1 + shards_[std::size_t(index_)]->state().size();
  copy_rooms_.emplace(arenas * job_.layout.largest_slice() + floats_in(slices_[0].clocks) +
                      floats_in(slices_[0].numbers));
  mirror_heads_.resize(shards_.size());
  for (int server = 0; server < int(shards_.size()); ++server)
    if (server != index_) expect_mirror(server);
  heir_ = succession_->heir(index_);
  expect_mirrored(heir_);
  for (SliceState& state : slices_)
    if (state.active) mirror(state);
}

bool ParameterServer::due(const SliceState& state) const {
  if (heir_ < 0 || state.mirrored.edition == state.edition) return false;
  if (job_.replicas > 0 || state.mirrored.edition == 0) return true;
  return state.version - state.mirrored.version >= job_.snapshot_every ||
         state.mirrored.generation != state.generation || !state.waiting.empty();
}

void ParameterServer::mirror(SliceState& state) {
  if (heir_ < 0 || state.under_way.edition > 0) return;
  Copy& copy = state.under_way;
  copy = {.edition = state.edition,
          .version = state.version,
          .generation = state.generation,
          .room = copy_rooms_->take()};
  RoomWalk walk(copy.room->data());
  const std::size_t offset = state.slice.offset, count = state.slice.count();
  walk.write(std::span<const float>(shard_of(state).slice_values(state.slice)));
  for (const NamedArena& arena : shard_of(state).state())
    walk.write(std::span<const float>(arena.second.subspan(offset, count)));
  walk.write(std::span<const Clock>(state.clocks));
  walk.write(std::span<const std::uint64_t>(state.numbers));
  const std::size_t floats = count * (1 + shard_of(state).state().size()) +
                             floats_in(state.clocks) + floats_in(state.numbers);
  const auto head = std::make_shared<MirrorHead>(MirrorHead{.slice = state.number,
                                                            .generation = copy.generation,
                                                            .edition = copy.edition,
                                                            .version = copy.version,
                                                            .term = state.term});
  courier_.send_parcel(rank_of(heir_), {.priority = int(state.number),
                                        .head_tag = tag_of(Stream::mirror),
                                        .body_tag = tag_of(Stream::copy),
                                        .head = bytes_of(*head),
                                        .body = std::as_bytes(std::span(*copy.room).first(floats)),
                                        .done = [head, room = copy.room] {}});
}

void ParameterServer::expect_mirrored(int server) {
  courier_.recv(rank_of(server), tag_of(Stream::mirrored), writable_bytes_of(ack_),
                [this, server](const Completion&) {
                  const MirrorAck came = ack_;
                  expect_mirrored(server);
                  SliceState& state = slices_.at(came.slice);
                  if (server != heir_ || state.under_way.edition != came.edition) return;
                  state.mirrored = std::exchange(state.under_way, {});
                  release(state);
                });
}

// Answers who waits for what has arrived. Without a replica, nobody looks at that copy again.
void ParameterServer::release(SliceState& state) {
  for (std::size_t i = 0; i < state.waiting.size();) {
    const Unanswered one = state.waiting[i];
    if (heir_ >= 0 && state.mirrored.edition < one.edition) {
      ++i;
      continue;
    }
    state.waiting.erase(state.waiting.begin() + std::ptrdiff_t(i));
    const bool from_copy = heir_ >= 0 && state.mirrored.room;
    send_values(state, one, from_copy ? &state.mirrored : nullptr);
  }
  if (job_.replicas == 0) state.mirrored.room = state.mirrored.halves = nullptr;
  if (due(state)) mirror(state);
}

void ParameterServer::expect_mirror(int server) {
  MirrorHead& head = mirror_heads_[std::size_t(server)];
  courier_.recv(rank_of(server), tag_of(Stream::mirror), writable_bytes_of(head),
                [this, server](const Completion&) {
                  const MirrorHead came = mirror_heads_[std::size_t(server)];
                  if (came.kind == MirrorHead::bye) return take_leave(server);
                  const Room room = copy_rooms_->take();
                  courier_.recv(rank_of(server), tag_of(Stream::copy),
                                std::as_writable_bytes(std::span(*room)),
                                [this, server, came, room](const Completion&) {
                                  expect_mirror(server);
                                  take_copy(server, came, *room);
                                });
                });
}

void ParameterServer::take_copy(int server, const MirrorHead& head, std::vector<float>& room) {
  SliceState& state = slices_.at(head.slice);
  // Who sends it keeps it, so that those before are lost; who was lost before keeps nothing.
  const int count = int(shards_.size());
  for (int one = state.slice.server; one != server; one = (one + 1) % count) {
    if (one == index_) return;
    lose_server(one);
  }
  if (state.active || succession_->lost(server)) return;
  if (head.generation >= state.generation) {
    ServerShard& shard = shard_for(state.slice.server);
    RoomWalk walk(room.data());
    walk.read(shard.slice_values(state.slice));
    for (const NamedArena& arena : shard.state())
      walk.read(arena.second.subspan(state.slice.offset, state.slice.count()));
    walk.read(std::span(state.clocks));
    walk.read(std::span(state.numbers));
    state.version = head.version;
    state.term = head.term;
    state.generation = head.generation;
    state.whole = true;
    if (kept_[std::size_t(state.slice.server)].empty() && is_whole(state.slice.server))
      keep(state.slice.server);
  }
  const auto ack =
      std::make_shared<MirrorAck>(MirrorAck{.slice = head.slice, .edition = head.edition});
  courier_.send(rank_of(server), tag_of(Stream::mirrored), bytes_of(*ack),
                [ack](const Completion&) {});
}

bool ParameterServer::is_whole(int server) const {
  return std::all_of(slices_.begin(), slices_.end(), [&](const SliceState& state) {
    return state.slice.server != server || state.active || state.whole;
  });
}

void ParameterServer::lose_server(int server) {
  if (leaving_ || server == index_ || succession_->lost(server)) return;
  succession_->lose(server);
  courier_.drop(rank_of(server));
  if (heir_ == server) find_heir();
  for (int one = 0; one < int(shards_.size()); ++one)
    if (succession_->holder(one) == index_) take_over(one);
}

void ParameterServer::find_heir() {
  heir_ = succession_->heir(index_);
  if (heir_ >= 0) expect_mirrored(heir_);
  for (SliceState& state : slices_) {
    if (!state.active) continue;
    state.mirrored = state.under_way = {};
    release(state);
  }
}

void ParameterServer::take_over(int server) {
  if (server == index_ || !is_whole(server)) return;
  bool any = false;
  for (SliceState& state : slices_)
    if (state.slice.server == server && !state.active) {
      state.active = any = true;
      state.edition = 1;
      ++state.term;
      state.taken_at = state.known = state.version;
      state.mirrored = state.under_way = {};
      statistics_.weight_updates =
          std::max(statistics_.weight_updates, state.version - job_.updates);
      if (due(state)) mirror(state);
    }
  if (!any) return;
  takeovers_.push_back({.server = server, .claims = std::vector<int>(peers_.size(), 0)});
}

// Comes before anything else that the worker has to say about the slice.
void ParameterServer::take_claim(int worker, const WorkerHead& claim) {
  if (claim.slice >= slices_.size())
    return refuse(worker, fmt::format("there is no slice {}", claim.slice));
  SliceState& state = slices_[claim.slice];
  const int count = int(shards_.size()), first = state.slice.server;
  for (int one = first; one != index_; one = (one + 1) % count) lose_server(one);
  if (!state.active)
    return refuse(worker, fmt::format("the parameters of server {} are lost with it, before there "
                                      "was a copy of all: go on with --resume",
                                      first));
  const std::size_t place = std::size_t(worker);
  state.clocks[place] = std::max(state.clocks[place], claim.clock);
  see_version(state, claim.version);
  const auto takeover = std::find_if(takeovers_.rbegin(), takeovers_.rend(),
                                     [&](const Takeover& one) { return one.server == first; });
  if (takeover == takeovers_.rend()) return;
  if (claim.number > state.numbers[place])
    takeover->gradients += std::int64_t(claim.number - state.numbers[place]);
  state.numbers[place] = std::max(state.numbers[place], claim.number);
  ++takeover->claims[place];
  consider(state);
  tell_accounts();
}

// A worker was told a newer version than another has: what that one pushes was for a round that is
// over, and lost. Applied now, it would be one of the next round, on this slice and not on
// others, and workers might wait for each other.
void ParameterServer::see_version(SliceState& state, std::int64_t version) {
  state.known = std::max(state.known, version);
  for (std::size_t i = 0; i < state.held.size();) {
    const Push& push = state.held[i];
    if (!of_lost_round(state, push)) {
      ++i;
      continue;
    }
    ++statistics_.dropped;
    state.unanswered.push_back({push.worker, push.arrived_s});
    state.held.erase(state.held.begin() + std::ptrdiff_t(i));
    state.held_by.erase(state.held_by.begin() + std::ptrdiff_t(i));
  }
}

void ParameterServer::tell_accounts() {
  for (Takeover& takeover : takeovers_) {
    Account account{.server = std::uint32_t(takeover.server),
                    .alone = heir_ < 0,
                    .gradients = takeover.gradients};
    int slices = 0;
    for (const SliceState& state : slices_)
      if (state.slice.server == takeover.server) {
        ++slices;
        account.updates = std::max(account.updates, state.known - state.taken_at);
      }
    bool all = !takeover.told && alive_[0];
    for (std::size_t i = 0; i < alive_.size(); ++i)
      all = all && (!alive_[i] || takeover.claims[i] >= slices);
    if (!all) continue;
    takeover.told = true;
    const auto kept = std::make_shared<Account>(account);
    courier_.send(0, tag_of(Stream::account), bytes_of(*kept), [kept](const Completion&) {});
  }
}

// A server that has no workers any more: those of this one are about to leave too.
void ParameterServer::take_leave(int server) {
  courier_.drop(rank_of(server));
  if (server != heir_) return;
  heir_ = -1;
  for (SliceState& state : slices_)
    if (state.active) release(state);
}

void ParameterServer::leave_servers() {
  leaving_ = true;
  if (!job_.mirrors()) return;
  const auto head = std::make_shared<MirrorHead>(MirrorHead{.kind = MirrorHead::bye});
  for (int server = 0; server < int(shards_.size()); ++server)
    if (server != index_ && !succession_->lost(server)) {
      courier_.drop(rank_of(server));
      courier_.send(rank_of(server), tag_of(Stream::mirror), bytes_of(*head),
                    [head](const Completion&) {});
    }
}

}  // namespace convoy
