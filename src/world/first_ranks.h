// The first ranks of a world as a world of their own: collectives among workers while servers, the
// ranks behind them, do something else. What only the whole world has (memory shared on a host,
// collectives of a library) is left out.
#pragma once

#include "base/check.h"
#include "world/transport.h"

namespace convoy {

class FirstRanks final : public Transport {
 public:
  // `whole` outlives this; the own rank is among the first `size`.
  FirstRanks(Transport& whole, int size) : whole_(whole), size_(size) {
    CHECK(whole.rank() < size && size <= whole.size(), "rank {} of the first {} of {}",
          whole.rank(), size, whole.size());
  }

  int rank() const override { return whole_.rank(); }
  int size() const override { return size_; }
  Ticket send(int to, Tag tag, std::span<const std::byte> bytes) override {
    return whole_.send(to, tag, bytes);
  }
  Ticket recv(int from, Tag tag, std::span<std::byte> buffer) override {
    return whole_.recv(from, tag, buffer);
  }
  void cancel(Ticket ticket) override { whole_.cancel(ticket); }
  void wake() override { whole_.wake(); }
  void publish(const Position& position) override { whole_.publish(position); }
  std::optional<Sighting> last_seen(int rank) override { return whole_.last_seen(rank); }
  void close(double timeout_s) override { whole_.close(timeout_s); }
  bool carries_bytes() const override { return whole_.carries_bytes(); }

 protected:
  std::optional<Completion> await(std::span<const Ticket> tickets, double timeout_s,
                                  Heed heed) override {
    if (heed == Heed::wake) return whole_.wait_any(tickets, timeout_s);
    return whole_.wait(tickets.front(), timeout_s);
  }

 private:
  Transport& whole_;
  const int size_;
};

}  // namespace convoy
