// A transport that counts what passes through it, by peer. What ranks of a host do in shared memory
// and what a library's own collectives send is not seen here.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "measure/records.h"
#include "world/transport.h"

namespace convoy {

class CountedTransport final : public Transport {
 public:
  explicit CountedTransport(Transport& inner);  // which outlives it

  // What there is so far, a record for each peer that there was something with since the last time;
  // rank and time are set. From one other task.
  void take(double at_s, Records& records);

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Ticket send(int to, Tag tag, std::span<const std::byte> bytes) override;
  Ticket recv(int from, Tag tag, std::span<std::byte> buffer) override;
  void cancel(Ticket ticket) override;
  void wake() override { inner_.wake(); }
  void publish(const Position& position) override { inner_.publish(position); }
  std::optional<Sighting> last_seen(int rank) override { return inner_.last_seen(rank); }
  void close(double timeout_s) override { inner_.close(timeout_s); }
  HostMemory* host_memory() override { return inner_.host_memory(); }
  NativeCollectives* native_collectives() override { return inner_.native_collectives(); }
  bool carries_bytes() const override { return inner_.carries_bytes(); }

 protected:
  std::optional<Completion> await(std::span<const Ticket> tickets, double timeout_s,
                                  Heed heed) override;

 private:
  struct Peer {
    std::atomic<std::int64_t> sent_bytes{0}, sent_messages{0};
    std::atomic<std::int64_t> received_bytes{0}, received_messages{0};
    std::int64_t told = 0;  // messages when it was last taken
  };
  void count_received(const Completion& done);

  Transport& inner_;
  std::unique_ptr<Peer[]> peers_;
  std::unordered_set<Ticket> receiving_;  // the owner's; tickets of recv that are not done
};

}  // namespace convoy
