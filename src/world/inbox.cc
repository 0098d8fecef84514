#include "world/inbox.h"

#include <cstring>
#include <utility>

namespace convoy {
namespace {

constexpr std::size_t kWorthKeeping = 64 << 10;
constexpr std::size_t kMostSpare = 64 << 20;  // bytes

}  // namespace

Ticket Inbox::recv(int from, Tag tag, std::span<std::byte> buffer) {
  const Matcher::Posted posted = matcher_.open_recv(from, tag, buffer);
  if (posted.early) {
    Message& message = messages_[*posted.early];
    message.ticket = posted.ticket;
    message.matched = true;
    if (message.announced) wanted_.push_back(*posted.early);
    if (message.complete) finish(*posted.early);
  }
  return posted.ticket;
}

Inbox::Arrival Inbox::begin(int from, Tag tag, std::size_t bytes) {
  const Arrival arrival = add({.from = from, .tag = tag, .bytes = bytes});
  Message& message = messages_[arrival];
  if (!message.matched) {
    message.kept = take_memory(bytes);
    if (kept_.empty()) kept_.resize(matcher_.size());
    kept_[from] += bytes;
  }
  return arrival;
}

Inbox::Arrival Inbox::announce(int from, Tag tag, std::size_t bytes) {
  const Arrival arrival = add({.from = from, .tag = tag, .bytes = bytes, .announced = true});
  if (messages_[arrival].matched) wanted_.push_back(arrival);
  return arrival;
}

Inbox::Arrival Inbox::add(Message message) {
  if (free_.empty()) {
    free_.push_back(static_cast<Arrival>(messages_.size()));
    messages_.emplace_back();
  }
  const Arrival arrival = free_.back();
  free_.pop_back();
  if (const auto ticket = matcher_.arrive(message.from, message.tag, message.bytes, arrival)) {
    message.ticket = *ticket;
    message.matched = true;
  }
  messages_[arrival] = std::move(message);
  return arrival;
}

std::byte* Inbox::bytes_of(Arrival arrival) {
  Message& message = messages_[arrival];
  return message.kept ? message.kept.get() : matcher_.buffer(message.ticket).data();
}

void Inbox::finish(Arrival arrival) {
  Message& message = messages_[arrival];
  message.complete = true;
  if (!message.matched) return;
  if (message.kept) {
    const std::span<std::byte> buffer = matcher_.buffer(message.ticket);
    if (!buffer.empty()) std::memcpy(buffer.data(), message.kept.get(), buffer.size());
  }
  matcher_.finish(message.ticket);
  free(arrival);
}

void Inbox::abandon(Arrival arrival) {
  const Message& message = messages_[arrival];
  if (!message.matched) matcher_.withdraw(message.from, message.tag, arrival);
  free(arrival);
}

void Inbox::free(Arrival arrival) {
  Message& message = messages_[arrival];
  if (message.kept) kept_[message.from] -= message.bytes;
  if (message.kept && message.bytes >= kWorthKeeping &&
      spare_bytes_ + message.bytes <= kMostSpare) {
    spare_bytes_ += message.bytes;
    spare_.push_back({message.bytes, std::move(message.kept)});
  }
  message.kept.reset();
  free_.push_back(arrival);
}

// Messages tend to come in one size.
std::unique_ptr<std::byte[]> Inbox::take_memory(std::size_t bytes) {
  for (Spare& spare : spare_)
    if (spare.bytes == bytes) {
      std::unique_ptr<std::byte[]> memory = std::move(spare.memory);
      spare_bytes_ -= bytes;
      spare = std::move(spare_.back());
      spare_.pop_back();
      return memory;
    }
  return std::make_unique_for_overwrite<std::byte[]>(bytes);
}

}  // namespace convoy
