// A transport behind slower links: a laboratory network on one machine, without root. The ranks
// must share a clock, which processes of one machine do.
//
// Every message goes out at once, behind a header that says when its first and last byte would have
// arrived; the receiver takes it no earlier than its own port, as slow as the sender's, has let it
// in. A send is done when the sender's port has let it out.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "world/runtime.h"
#include "world/transport.h"

namespace convoy {

struct ShapedLink {
  double latency_s = 0;
  double bytes_per_s = kForever;
  double jitter_s = 0;  // at most so much more latency, by chance
};

struct ShapedOptions {
  // The link from the own rank to another.
  std::function<ShapedLink(int to)> link = [](int) { return ShapedLink{}; };
  std::uint64_t seed = 1;  // of the jitter
};

class ShapedTransport final : public Transport {
 public:
  // `inner` and `runtime` must outlive this.
  ShapedTransport(Transport& inner, Runtime& runtime, const ShapedOptions& options);
  ~ShapedTransport() override;

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Ticket send(int to, Tag tag, std::span<const std::byte> bytes) override;
  Ticket recv(int from, Tag tag, std::span<std::byte> buffer) override;
  void cancel(Ticket ticket) override;
  void wake() override;
  void publish(const Position& position) override { inner_.publish(position); }
  std::optional<Sighting> last_seen(int rank) override { return inner_.last_seen(rank); }
  void close(double timeout_s) override;
  HostMemory* host_memory() override { return inner_.host_memory(); }

 protected:
  std::optional<Completion> await(std::span<const Ticket> tickets, double timeout_s,
                                  Heed heed) override;

 private:
  struct Storage {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t capacity = 0;
  };

  struct Operation {
    Ticket inner = 0;
    Storage storage;              // header and message
    std::span<std::byte> buffer;  // of a receive
    Completion completion;
    double ready_s = 0;  // not done before
    std::uint32_t generation = 1;
    bool open = false;
    bool is_send = false;
    bool inner_done = false;
  };

  Ticket open(bool is_send, std::size_t bytes);
  Operation* find(Ticket ticket);
  void end(Operation& operation);
  Storage take_storage(std::size_t bytes);
  void note(Operation& operation, const Completion& completion);
  double jitter(double most_s);

  Transport& inner_;
  Runtime& runtime_;
  std::vector<ShapedLink> links_;
  std::vector<double> last_arrival_s_;  // to every rank
  double port_out_free_s_ = 0;
  double port_in_free_s_ = 0;
  std::uint64_t random_;
  std::atomic<bool> woken_ = false;
  std::vector<Operation> operations_;
  std::vector<std::uint32_t> free_;
  std::vector<Storage> spare_;
  std::vector<Ticket> waiting_;  // inner tickets, in await
};

}  // namespace convoy
