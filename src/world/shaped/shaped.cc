#include "world/shaped/shaped.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace convoy {
namespace {

struct Header {
  double head_s;       // the first byte arrives
  double tail_s;       // the last byte can arrive
  double bytes_per_s;  // of the link
};

}  // namespace

ShapedTransport::ShapedTransport(Transport& inner, Runtime& runtime, const ShapedOptions& options)
    : inner_(inner),
      runtime_(runtime),
      last_arrival_s_(inner.size(), 0),
      random_(options.seed * 0x9e3779b97f4a7c15u + static_cast<unsigned>(inner.rank()) + 1) {
  CHECK(inner.carries_bytes(), "messages without content cannot carry a header");
  for (int to = 0; to < inner.size(); ++to) links_.push_back(options.link(to));
}

ShapedTransport::~ShapedTransport() {
  for (const Operation& operation : operations_)
    if (operation.open && !operation.inner_done) inner_.cancel(operation.inner);
}

double ShapedTransport::jitter(double most_s) {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return most_s * static_cast<double>(random_ >> 11) * 0x1p-53;
}

ShapedTransport::Storage ShapedTransport::take_storage(std::size_t bytes) {
  for (Storage& spare : spare_)
    if (spare.capacity >= bytes && spare.capacity <= 2 * bytes + 4096) {
      Storage taken = std::move(spare);
      spare = std::move(spare_.back());
      spare_.pop_back();
      return taken;
    }
  return {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
}

Ticket ShapedTransport::open(bool is_send, std::size_t bytes) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(operations_.size()));
    operations_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  Operation& operation = operations_[slot];
  operation.open = true;
  operation.is_send = is_send;
  operation.inner_done = false;
  operation.storage = take_storage(sizeof(Header) + bytes);
  return static_cast<Ticket>(operation.generation) << 32 | slot;
}

ShapedTransport::Operation* ShapedTransport::find(Ticket ticket) {
  const auto slot = static_cast<std::uint32_t>(ticket);
  if (slot >= operations_.size()) return nullptr;
  Operation& operation = operations_[slot];
  return operation.open && operation.generation == ticket >> 32 ? &operation : nullptr;
}

void ShapedTransport::end(Operation& operation) {
  constexpr std::size_t kMostSpare = 32;
  operation.open = false;
  ++operation.generation;
  if (spare_.size() < kMostSpare) spare_.push_back(std::move(operation.storage));
  operation.storage = {};
  free_.push_back(static_cast<std::uint32_t>(&operation - operations_.data()));
}

Ticket ShapedTransport::send(int to, Tag tag, std::span<const std::byte> bytes) {
  const Ticket ticket = open(true, bytes.size());
  Operation& operation = *find(ticket);
  const ShapedLink& link = links_[to];
  const double start_s = std::max(runtime_.now_s(), port_out_free_s_);
  const double latency_s = link.latency_s + (link.jitter_s > 0 ? jitter(link.jitter_s) : 0);
  const double length_s = static_cast<double>(bytes.size()) / link.bytes_per_s;
  port_out_free_s_ = operation.ready_s = start_s + length_s;
  // Jitter does not let a message overtake another on its link.
  const double head_s = std::max(start_s + latency_s, last_arrival_s_[to]);
  last_arrival_s_[to] = head_s + length_s;
  const Header header{head_s, head_s + length_s, link.bytes_per_s};
  std::byte* const storage = operation.storage.bytes.get();
  std::memcpy(storage, &header, sizeof header);
  if (!bytes.empty()) std::memcpy(storage + sizeof header, bytes.data(), bytes.size());
  operation.inner = inner_.send(to, tag, {storage, sizeof header + bytes.size()});
  return ticket;
}

Ticket ShapedTransport::recv(int from, Tag tag, std::span<std::byte> buffer) {
  const Ticket ticket = open(false, buffer.size());
  Operation& operation = *find(ticket);
  operation.buffer = buffer;
  operation.inner =
      inner_.recv(from, tag, {operation.storage.bytes.get(), sizeof(Header) + buffer.size()});
  return ticket;
}

void ShapedTransport::cancel(Ticket ticket) {
  Operation* const operation = find(ticket);
  if (operation == nullptr) return;
  if (!operation->inner_done) inner_.cancel(operation->inner);
  end(*operation);
}

void ShapedTransport::wake() {
  woken_ = true;
  inner_.wake();
}

// The inner transport is done with it; now its time must come.
void ShapedTransport::note(Operation& operation, const Completion& completion) {
  operation.inner_done = true;
  operation.completion = completion;
  if (completion.bytes < sizeof(Header))
    throw TransportError(fmt::format("rank {} sends without shaping its links", completion.rank));
  const std::size_t bytes = operation.completion.bytes -= sizeof(Header);
  if (operation.is_send) return;
  Header header;
  std::memcpy(&header, operation.storage.bytes.get(), sizeof header);
  if (bytes > 0)
    std::memcpy(operation.buffer.data(), operation.storage.bytes.get() + sizeof header, bytes);
  const double start_s = std::max(header.head_s, port_in_free_s_);
  const double length_s = static_cast<double>(bytes) / header.bytes_per_s;
  operation.ready_s = port_in_free_s_ = std::max(start_s + length_s, header.tail_s);
}

std::optional<Completion> ShapedTransport::await(std::span<const Ticket> tickets, double timeout_s,
                                                 Heed heed) {
  const double deadline_s = runtime_.now_s() + timeout_s;
  for (;;) {
    const double now_s = runtime_.now_s();
    double next_s = deadline_s;
    waiting_.clear();
    for (const Ticket ticket : tickets) {
      Operation* const operation = find(ticket);
      CHECK(operation != nullptr, "ticket {:x} is used up", ticket);
      if (!operation->inner_done) {
        waiting_.push_back(operation->inner);
      } else if (operation->ready_s <= now_s) {
        Completion done = operation->completion;
        done.ticket = ticket;
        end(*operation);
        return done;
      } else {
        next_s = std::min(next_s, operation->ready_s);
      }
    }
    if (heed == Heed::wake && woken_.exchange(false)) return std::nullopt;
    const auto done = inner_.wait_any(waiting_, std::max(0.0, next_s - now_s));
    if (done) {
      for (const Ticket ticket : tickets)
        if (Operation& operation = *find(ticket); operation.inner == done->ticket)
          note(operation, *done);
    } else if (next_s == deadline_s && runtime_.now_s() >= deadline_s) {
      return std::nullopt;
    }
  }
}

void ShapedTransport::close(double timeout_s) {
  const double wait_s = port_out_free_s_ - runtime_.now_s();
  if (wait_s > timeout_s)
    throw DeadlineExceeded(
        fmt::format("rank {}: what it sent needs {} s to leave", rank(), wait_s));
  if (wait_s > 0) runtime_.sleep_s(wait_s);
  inner_.close(timeout_s - std::max(0.0, wait_s));
}

}  // namespace convoy
