#include "world/inproc/inproc.h"

#include <sys/mman.h>

#include <exception>
#include <thread>

#include "base/check.h"
#include "world/inproc/inproc_host_memory.h"
#include "world/inproc/inproc_hub.h"
#include "world/thread_runtime.h"

namespace convoy {
namespace {

class InprocTransport final : public Transport {
 public:
  InprocTransport(InprocHub& hub, int rank) : hub_(hub), rank_(rank), memory_(hub, rank) {}

  int rank() const override { return rank_; }
  int size() const override { return hub_.size(); }
  Ticket send(int to, Tag tag, std::span<const std::byte> bytes) override {
    return hub_.send(rank_, to, tag, bytes);
  }
  Ticket recv(int from, Tag tag, std::span<std::byte> buffer) override {
    return hub_.recv(rank_, from, tag, buffer);
  }
  void cancel(Ticket ticket) override { hub_.cancel(rank_, ticket); }
  void wake() override { hub_.wake(rank_); }
  void publish(const Position& position) override { hub_.publish(rank_, position); }
  std::optional<Sighting> last_seen(int rank) override { return hub_.last_seen(rank); }
  void close(double) override {  // what was sent has arrived already
    hub_.obey(rank_);
    hub_.leave(rank_);
  }
  HostMemory* host_memory() override { return &memory_; }

 protected:
  std::optional<Completion> await(std::span<const Ticket> tickets, double timeout_s,
                                  Heed heed) override {
    return hub_.await(rank_, tickets, timeout_s, heed == Heed::wake);
  }

 private:
  InprocHub& hub_;
  int rank_;
  InprocHostMemory memory_;
};

// The regions of all ranks. They outlive every rank: a peer may still read in the region of one
// that has ended. Where the process may not have that many addresses (ulimit -v) regions are
// smaller: most ranks use little of theirs, one that is alone nothing.
class Regions {
 public:
  explicit Regions(InprocHub& hub) : bytes_(hub.region_bytes()) {
    while (!reserve(hub.size())) {
      if (bytes_ <= kLeast)
        throw TransportError(fmt::format(
            "no {} bytes of memory for {} ranks to share (see ulimit -v)", bytes_, hub.size()));
      bytes_ /= 8;
    }
    hub.set_region_bytes(bytes_);
    for (int rank = 0; rank < hub.size(); ++rank) {
      const std::vector<int>& ranks = hub.ranks_of_host(rank);
      for (std::size_t index = 0; index < ranks.size(); ++index)
        if (ranks[index] == rank)
          hub.host(rank).regions[index] = static_cast<std::byte*>(regions_[rank]);
    }
  }
  ~Regions() { release(); }
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;

 private:
  static constexpr std::size_t kLeast = std::size_t{1} << 20;

  bool reserve(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      void* const region = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (region == MAP_FAILED) {
        release();
        return false;
      }
      madvise(region, bytes_, MADV_HUGEPAGE);  // where the system may
      regions_.push_back(region);
    }
    return true;
  }
  void release() {
    for (void* const region : regions_) munmap(region, bytes_);
    regions_.clear();
  }

  std::size_t bytes_;
  std::vector<void*> regions_;
};

// The failure of the rank that failed first.
class FirstFailure {
 public:
  void note(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!first_) first_ = std::move(failure);
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

void run_rank(InprocHub& hub, int rank, const RankBody& body, FirstFailure& failure) {
  std::string why = "it ended without closing its transport";
  try {
    ThreadRuntime runtime;
    InprocTransport transport(hub, rank);
    body(World{runtime, transport});
  } catch (const RankKilled&) {
    why = "it was killed";
  } catch (const std::exception& error) {
    failure.note(std::current_exception());
    why = error.what();
  } catch (...) {
    failure.note(std::current_exception());
    why = "it failed";
  }
  hub.lose(rank, why);
}

}  // namespace

// Faults live as long as the test, the hub as long as the run.
struct InprocFaultsLink {
  std::mutex mutex;
  InprocHub* hub = nullptr;

  template <typename Fault>
  void apply(Fault fault) {
    const std::lock_guard lock(mutex);
    if (hub != nullptr) fault(*hub);
  }
};

InprocFaults::InprocFaults() : link_(std::make_shared<InprocFaultsLink>()) {}
InprocFaults::~InprocFaults() = default;
void InprocFaults::kill(int rank) {
  link_->apply([&](InprocHub& hub) { hub.kill(rank); });
}
void InprocFaults::pause(int rank) {
  link_->apply([&](InprocHub& hub) { hub.pause(rank); });
}
void InprocFaults::resume(int rank) {
  link_->apply([&](InprocHub& hub) { hub.resume(rank); });
}
void InprocFaults::cut(int rank, int peer) {
  link_->apply([&](InprocHub& hub) { hub.cut(rank, peer); });
}

void run_inproc(int size, const InprocOptions& options, const RankBody& body) {
  CHECK(size >= 1, "{} ranks", size);
  InprocHub hub(size, options);
  const Regions regions(hub);
  const auto attach = [&](InprocHub* now) {
    if (options.faults == nullptr) return;
    const std::lock_guard lock(options.faults->link_->mutex);
    options.faults->link_->hub = now;
  };
  attach(&hub);
  FirstFailure failure;
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < size; ++rank)
      ranks.emplace_back([&, rank] { run_rank(hub, rank, body, failure); });
  }
  attach(nullptr);
  failure.rethrow();
}

}  // namespace convoy
