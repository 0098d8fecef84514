#include "world/matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace convoy {

Matcher::Chains::Chain& Matcher::Chains::chain(Tag tag) {
  if (chains_.empty()) return only_;
  const std::uint32_t mixed = (tag * 0x9e3779b1u) >> 8;
  return chains_[mixed & (chains_.size() - 1)];
}

template <typename Node>
void Matcher::Chains::link(std::vector<Node>& nodes, Chain& chain, std::uint32_t node) {
  nodes[node].next = kNone;
  (chain.tail == kNone ? chain.head : nodes[chain.tail].next) = node;
  chain.tail = node;
}

template <typename Node>
void Matcher::Chains::append(std::vector<Node>& nodes, std::uint32_t node) {
  constexpr std::size_t kFew = 8;
  if (++count_ > std::max(kFew, 2 * chains_.size())) [[unlikely]]
    grow(nodes);
  link(nodes, chain(nodes[node].tag), node);
}

// Nodes of one tag come from one chain, so that their order stays.
template <typename Node>
void Matcher::Chains::grow(std::vector<Node>& nodes) {
  std::vector<Chain> old =
      std::exchange(chains_, std::vector<Chain>(std::max<std::size_t>(16, 4 * chains_.size())));
  if (old.empty()) old.push_back(std::exchange(only_, {}));
  for (const Chain& from : old)
    for (std::uint32_t node = from.head; node != kNone;) {
      const std::uint32_t next = nodes[node].next;
      link(nodes, chain(nodes[node].tag), node);
      node = next;
    }
}

template <typename Node, typename Wanted>
std::uint32_t Matcher::Chains::take(std::vector<Node>& nodes, Tag tag, Wanted wanted) {
  Chain& from = chain(tag);
  std::uint32_t before = kNone;
  for (std::uint32_t node = from.head; node != kNone; before = node, node = nodes[node].next) {
    if (nodes[node].tag != tag || !wanted(node)) continue;
    (before == kNone ? from.head : nodes[before].next) = nodes[node].next;
    if (from.tail == node) from.tail = before;
    --count_;
    return node;
  }
  return kNone;
}

std::uint32_t Matcher::new_operation() {
  if (free_operation_ == kNone) {
    operations_.emplace_back();
    return static_cast<std::uint32_t>(operations_.size() - 1);
  }
  const std::uint32_t slot = free_operation_;
  free_operation_ = operations_[slot].next;
  return slot;
}

void Matcher::free_operation(std::uint32_t slot) {
  Operation& operation = operations_[slot];
  operation.state = State::free;
  ++operation.generation;
  operation.next = std::exchange(free_operation_, slot);
}

Ticket Matcher::ticket_of(std::uint32_t slot) const {
  return static_cast<Ticket>(operations_[slot].generation) << 32 | slot;
}

Ticket Matcher::open_send(int to, std::size_t bytes, std::uint64_t note) {
  CHECK(to >= 0 && to < size_, "send to rank {} of {}", to, size_);
  const std::uint32_t slot = new_operation();
  Operation& operation = operations_[slot];
  operation.rank = to;
  operation.bytes = bytes;
  operation.capacity = note;
  operation.is_send = true;
  operation.state = gone(to) ? State::lost : State::sending;
  if (operation.state == State::sending) ++open_sends_;
  return ticket_of(slot);
}

Matcher::Posted Matcher::open_recv(int from, Tag tag, std::span<std::byte> buffer) {
  CHECK(from >= kAnyRank && from < size_, "receive from rank {} of {}", from, size_);
  const std::uint32_t slot = new_operation();
  Operation& operation = operations_[slot];
  operation.data = buffer.data();
  operation.capacity = buffer.size();
  operation.rank = from;
  operation.tag = tag;
  operation.is_send = false;
  operation.losses_told = 0;
  const std::uint32_t early = early_chains_.take(early_, tag, [&](std::uint32_t node) {
    return from == kAnyRank || early_[node].rank == from;
  });
  if (early != kNone) {
    early_[early].next = std::exchange(free_early_, early);
    match(operation, early_[early].rank, early_[early].bytes);
    return {ticket_of(slot), early_[early].parcel};
  }
  if (from != kAnyRank && gone(from)) {
    operation.state = State::lost;
  } else {
    operation.state = State::posted;
    posted_.append(operations_, slot);
  }
  return {ticket_of(slot), std::nullopt};
}

void Matcher::match(Operation& operation, int from, std::size_t bytes) {
  operation.rank = from;
  operation.bytes = bytes;
  operation.state = bytes > operation.capacity ? State::too_long : State::arriving;
}

std::optional<Ticket> Matcher::arrive(int from, Tag tag, std::size_t bytes, Parcel parcel) {
  const std::uint32_t slot = posted_.take(operations_, tag, [&](std::uint32_t node) {
    return operations_[node].rank == from || operations_[node].rank == kAnyRank;
  });
  if (slot != kNone) {
    match(operations_[slot], from, bytes);
    return ticket_of(slot);
  }
  std::uint32_t node = free_early_;
  if (node == kNone) {
    node = static_cast<std::uint32_t>(early_.size());
    early_.emplace_back();
  } else {
    free_early_ = early_[node].next;
  }
  early_[node] = {.bytes = bytes, .rank = from, .tag = tag, .parcel = parcel};
  early_chains_.append(early_, node);
  return std::nullopt;
}

std::span<std::byte> Matcher::buffer(Ticket ticket) {
  const Operation* operation = find(ticket);
  if (operation == nullptr || operation->state != State::arriving) return {};
  return {operation->data, operation->bytes};
}

void Matcher::finish(Ticket ticket) {
  Operation* operation = find(ticket);
  if (operation == nullptr) return;
  if (operation->state == State::sending) --open_sends_;
  if (operation->state == State::sending || operation->state == State::arriving)
    operation->state = State::done;
}

void Matcher::withdraw(int from, Tag tag, Parcel parcel) {
  const std::uint32_t node = early_chains_.take(early_, tag, [&](std::uint32_t candidate) {
    return early_[candidate].rank == from && early_[candidate].parcel == parcel;
  });
  if (node != kNone) early_[node].next = std::exchange(free_early_, node);
}

void Matcher::lose(int rank, const std::string& why) {
  if (!fate_.empty() && fate_[rank] == Fate::lost) return;
  losses_.push_back(rank);
  reasons_.push_back(why);
  depart(rank, Fate::lost);
}

bool Matcher::leave(int rank) { return !gone(rank) && depart(rank, Fate::left); }

bool Matcher::depart(int rank, Fate fate) {
  if (fate_.empty()) fate_.resize(size_);
  fate_[rank] = fate;
  bool failed = false;
  for (std::uint32_t slot = 0; slot < operations_.size(); ++slot) {
    Operation& operation = operations_[slot];
    if (operation.rank != rank) continue;
    if (operation.state == State::posted)
      posted_.take(operations_, operation.tag, [&](std::uint32_t node) { return node == slot; });
    else if (operation.state == State::sending)
      --open_sends_;
    else if (operation.state != State::arriving)
      continue;
    operation.state = State::lost;
    failed = true;
  }
  return failed;
}

std::optional<Completion> Matcher::take_done(std::span<const Ticket> tickets) {
  for (const Ticket ticket : tickets) {
    const Operation* operation = find(ticket);
    CHECK(operation != nullptr, "ticket {:x} is used up", ticket);
    if (operation->state != State::done) continue;
    const Completion completion{ticket, operation->rank, operation->bytes};
    free_operation(static_cast<std::uint32_t>(ticket));
    return completion;
  }
  for (const Ticket ticket : tickets) {
    Operation& operation = *find(ticket);
    if (operation.state == State::lost || operation.state == State::too_long) fail(operation);
    if (operation.rank == kAnyRank && operation.losses_told < losses_.size()) {
      const std::uint32_t told = operation.losses_told++;
      throw PeerLost(losses_[told], reasons_[told]);
    }
  }
  return std::nullopt;
}

void Matcher::fail(const Operation& operation) const {
  if (operation.state == State::too_long)
    throw TransportError(
        fmt::format("a message of {} bytes from rank {} under tag {} came for a buffer of {} bytes",
                    operation.bytes, operation.rank, operation.tag, operation.capacity));
  throw PeerLost(operation.rank, reason(operation.rank));
}

std::string Matcher::reason(int rank) const {
  const auto loss = std::find(losses_.begin(), losses_.end(), rank);
  return loss == losses_.end() ? "it has ended its work" : reasons_[loss - losses_.begin()];
}

void Matcher::give_up(Ticket ticket) {
  const Operation* operation = find(ticket);
  if (operation == nullptr) return;
  const auto slot = static_cast<std::uint32_t>(ticket);
  if (operation->state == State::posted)
    posted_.take(operations_, operation->tag, [&](std::uint32_t node) { return node == slot; });
  if (operation->state == State::sending) --open_sends_;
  free_operation(slot);
}

std::string Matcher::describe(Ticket ticket) const {
  const Operation* operation = find(ticket);
  if (operation == nullptr) return "nothing";
  if (operation->is_send)
    return fmt::format("its send of {} bytes to rank {}", operation->bytes, operation->rank);
  const std::string who =
      operation->rank == kAnyRank ? "any rank" : fmt::format("rank {}", operation->rank);
  return fmt::format("a message from {} under tag {}", who, operation->tag);
}

}  // namespace convoy
