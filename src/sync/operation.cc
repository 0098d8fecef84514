#include "sync/operation.h"

#include <algorithm>

#include "sync/intent_check.h"
#include "sync/reduce_kernels.h"

namespace convoy {
namespace {

// Where room without content would begin. Nobody reads or writes there.
std::byte* nowhere() { return reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20); }

std::span<std::byte> segment(std::span<std::byte> bytes, std::size_t number, std::size_t length) {
  const std::size_t begin = std::min(number * length, bytes.size());
  return bytes.subspan(begin, std::min(length, bytes.size() - begin));
}

std::span<const std::byte> segment(std::span<const std::byte> bytes, std::size_t number,
                                   std::size_t length) {
  const std::size_t begin = std::min(number * length, bytes.size());
  return bytes.subspan(begin, std::min(length, bytes.size() - begin));
}

}  // namespace

std::span<std::byte> Scratch::room(std::size_t bytes) {
  if (!real_) return {nowhere(), bytes};
  if (memory_.size() < bytes) memory_.resize(bytes);
  return std::span(memory_).first(bytes);
}

void Operation::add(std::span<std::byte> into, std::span<const std::byte> from) const {
  if (transport.carries_bytes())
    combine(element, reduction, into.data(), from.data(), into.size() / width());
}

void Operation::apply_factor(std::span<std::byte> values) const {
  if (factor != 1 && transport.carries_bytes())
    scale(element, values.data(), values.size() / width(), factor);
}

void Operation::finish(Ticket ticket, int rank, std::size_t bytes) const {
  const Completion done = intent_check && intent_check->open()
                              ? intent_check->wait_beside(ticket, rank, timeout_s)
                              : transport.wait(ticket, timeout_s);
  if (done.bytes != bytes) [[unlikely]]
    throw TransportError(fmt::format(
        "a message of {} bytes came from rank {} where {} were expected", done.bytes, rank, bytes));
}

Flight::~Flight() {
  for (; first_ != last_; ++first_) {
    const Entry& entry = entries_[first_ % kCapacity];
    if (entry.bytes == 0) continue;
    try {
      operation_.transport.cancel(entry.ticket);
    } catch (const TransportError&) {
      // The error that is passing through says more.
    }
  }
}

void exchange(const Operation& operation, int rank, std::span<const std::byte> outgoing,
              std::span<std::byte> incoming, Arrival arrival) {
  const std::size_t length = operation.segment_length();
  const std::size_t out_count = (outgoing.size() + length - 1) / length;
  const std::size_t in_count = (incoming.size() + length - 1) / length;
  const bool adds = arrival == Arrival::add;
  const std::span<std::byte> room =
      adds ? operation.scratch.room(kAhead * std::min(length, incoming.size()))
           : std::span<std::byte>();
  const auto place = [&](std::size_t number) {
    const std::span<std::byte> final = segment(incoming, number, length);
    return adds ? room.subspan(number % kAhead * std::min(length, incoming.size()), final.size())
                : final;
  };
  Flight sends(operation, rank), receives(operation, rank);
  for (std::size_t number = 0; number < std::min(kAhead, in_count); ++number)
    receives.recv(place(number));
  // The other side receives kAhead segments ahead of what it has sent too, so that a send which is
  // waited for here always finds its receive.
  for (std::size_t number = 0; number < std::max(out_count, in_count); ++number) {
    if (number < out_count) sends.send(segment(outgoing, number, length));
    if (number < in_count) {
      receives.finish_oldest();
      if (adds) operation.add(segment(incoming, number, length), place(number));
      if (number + kAhead < in_count) receives.recv(place(number + kAhead));
    }
    if (sends.open() == kAhead) sends.finish_oldest();
  }
  sends.finish_all();
}

}  // namespace convoy
