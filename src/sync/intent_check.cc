#include "sync/intent_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "sync/algorithms.h"
#include "sync/grouped_digits.h"

namespace convoy {
namespace {

constexpr std::array<const char*, 6> kKinds{"all_reduce", "reduce_scatter", "all_gather",
                                            "broadcast",  "reduce",         "barrier"};

// Bits of an Intent, from the highest: kind 4, element 2, reduction 2, algorithm 4, root 12,
// bytes 40.
constexpr int kBytesBits = 40, kRootBits = 12;

std::span<std::byte> bytes_of(std::uint64_t& word) {
  return std::as_writable_bytes(std::span(&word, 1));
}
std::span<const std::byte> bytes_of(const std::uint64_t& word) {
  return std::as_bytes(std::span(&word, 1));
}

}  // namespace

std::string kind_name(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::uint64_t Intent::pack() const {
  const auto head = std::uint64_t(kind) << 8 | std::uint64_t(element) << 6 |
                    std::uint64_t(reduction) << 4 | (std::uint64_t(algorithm) & 15);
  return (head << kRootBits | (std::uint64_t(root) & 0xfff)) << kBytesBits |
         (bytes & ((std::uint64_t{1} << kBytesBits) - 1));
}

Intent Intent::unpack(std::uint64_t packed) {
  const std::uint64_t head = packed >> (kBytesBits + kRootBits);
  return {.kind = static_cast<Kind>(std::min<std::uint64_t>(head >> 8, kKinds.size() - 1)),
          .element = static_cast<Element>(std::min<std::uint64_t>(head >> 6 & 3, 2)),
          .reduction = static_cast<Reduction>(std::min<std::uint64_t>(head >> 4 & 3, 2)),
          .algorithm = static_cast<int>(head & 15),
          .root = static_cast<int>(packed >> kBytesBits & 0xfff),
          .bytes = packed & ((std::uint64_t{1} << kBytesBits) - 1)};
}

std::string Intent::text() const {
  const std::string name = kind_name(kind);
  const std::string size = grouped_digits(bytes);
  switch (kind) {
    case Kind::all_reduce:
      return fmt::format("{} ({} of {} bytes of {} by {})", name, reduction_name(reduction), size,
                         element_name(element), algorithm_name(algorithm));
    case Kind::reduce_scatter:
      return fmt::format("{} ({} of {} bytes of {})", name, reduction_name(reduction), size,
                         element_name(element));
    case Kind::reduce:
      return fmt::format("{} ({} of {} bytes of {} to rank {})", name, reduction_name(reduction),
                         size, element_name(element), root);
    case Kind::broadcast:
      return fmt::format("{} ({} bytes from rank {})", name, size, root);
    case Kind::all_gather:
      return fmt::format("{} ({} bytes)", name, size);
    case Kind::barrier:
      break;
  }
  return name;
}

IntentCheck::IntentCheck(Runtime& runtime, Transport& transport, const Group& group, Tag tag,
                         Intent mine)
    : runtime_(runtime), transport_(transport), mine_(mine), sent_(mine.pack()) {
  const int n = group.size();
  if (n == 1) return;
  left_ = group.ranks[static_cast<std::size_t>((group.index + n - 1) % n)];
  right_ = group.ranks[static_cast<std::size_t>((group.index + 1) % n)];
  recv_ = transport_.recv(left_, tag, bytes_of(received_));
  receiving_ = true;
  send_ = transport_.send(right_, tag, bytes_of(sent_));
  sending_ = true;
}

IntentCheck::~IntentCheck() {
  try {
    if (receiving_) transport_.cancel(recv_);
    if (sending_) transport_.cancel(send_);
    if (woken_) transport_.wake();
  } catch (const TransportError&) {
    // The error that is passing through says more.
  }
}

void IntentCheck::compare() {
  receiving_ = false;
  if (!transport_.carries_bytes() || received_ == sent_) return;
  throw Mismatch(fmt::format("rank {} is in {} where rank {} is in {}", left_,
                             Intent::unpack(received_).text(), transport_.rank(), mine_.text()));
}

Completion IntentCheck::wait_beside(Ticket ticket, int rank, double timeout_s) {
  constexpr double kTooShort_s = 1e-9;  // what is left by rounding; a virtual clock may be coarser
  const double end_s = runtime_.now_s() + timeout_s;
  for (double left_s = timeout_s; left_s > kTooShort_s; left_s = end_s - runtime_.now_s()) {
    if (!receiving_) return transport_.wait(ticket, left_s);
    const std::array<Ticket, 2> tickets{recv_, ticket};
    const std::optional<Completion> done = transport_.wait_any(tickets, left_s);
    if (!done) {
      woken_ = runtime_.now_s() + kTooShort_s < end_s || woken_;
      continue;
    }
    if (done->ticket == ticket) return *done;
    compare();
  }
  throw DeadlineExceeded(fmt::format("no message from rank {} within {} s", rank, timeout_s));
}

void IntentCheck::finish(double timeout_s) {
  if (receiving_) {
    transport_.wait(recv_, timeout_s);
    compare();
  }
  if (sending_) {
    transport_.wait(send_, timeout_s);
    sending_ = false;
  }
}

}  // namespace convoy
