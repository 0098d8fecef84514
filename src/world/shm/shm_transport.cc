#include "world/shm/shm_transport.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "world/inbox.h"
#include "world/shm/host_memory.h"
#include "world/shm/links.h"
#include "world/shm/neighbours.h"

namespace convoy {
namespace {

class ShmTransport final : public Transport {
 public:
  // With `inherited`, that is the segment.
  ShmTransport(std::optional<shm::Segment> inherited, shm::Segment* segment,
               const ShmOptions& options)
      : inherited_(std::move(inherited)),
        rank_(options.rank),
        ranks_(options.ranks),
        place_of_(options.size, -1),
        neighbours_(inherited_ ? *inherited_ : *segment, place_among(ranks_, rank_)),
        inbox_(options.size),
        links_(neighbours_, ranks_, inbox_),
        host_memory_(neighbours_, links_, ranks_) {
    for (std::size_t place = 0; place < ranks_.size(); ++place)
      place_of_.at(ranks_[place]) = static_cast<int>(place);
    neighbours_.meet(options.timeout_s);
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(place_of_.size()); }

  Ticket send(int to, Tag tag, std::span<const std::byte> bytes) override {
    return links_.send(place(to), tag, bytes);
  }

  Ticket recv(int from, Tag tag, std::span<std::byte> buffer) override {
    if (from != kAnyRank) place(from);
    return inbox_.recv(from, tag, buffer);
  }

  void cancel(Ticket ticket) override {
    if (!links_.cancel(ticket)) inbox_.matcher().give_up(ticket);
  }

  void wake() override {
    woken_.store(true);
    neighbours_.ring_self();
  }

  void publish(const Position& position) override { neighbours_.publish(position); }
  std::optional<Sighting> last_seen(int rank) override {
    return neighbours_.last_seen(place(rank));
  }

  void close(double timeout_s) override;
  HostMemory* host_memory() override { return &host_memory_; }

 protected:
  std::optional<Completion> await(std::span<const Ticket> tickets, double timeout_s,
                                  Heed heed) override;

 private:
  static int place_among(const std::vector<int>& ranks, int rank) {
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    CHECK(found != ranks.end(), "rank {} is not among those of its host", rank);
    return static_cast<int>(found - ranks.begin());
  }
  int place(int rank) const {
    CHECK(rank >= 0 && rank < size() && place_of_[rank] >= 0, "rank {} is not on this host", rank);
    return place_of_[rank];
  }
  [[noreturn]] void miss(std::span<const Ticket> tickets, double timeout_s);

  std::optional<shm::Segment> inherited_;
  const int rank_;
  const std::vector<int> ranks_;
  std::vector<int> place_of_;  // by rank; -1: not on this host
  std::atomic<bool> woken_ = false;
  shm::Neighbours neighbours_;
  Inbox inbox_;
  shm::Links links_;
  shm::SegmentHostMemory host_memory_;
};

std::optional<Completion> ShmTransport::await(std::span<const Ticket> tickets, double timeout_s,
                                              Heed heed) {
  using Look = shm::Neighbours::Look;
  Matcher& matcher = inbox_.matcher();
  std::optional<Completion> done = matcher.take_done(tickets);
  if (done) return done;
  const bool in_time = neighbours_.wait_until(timeout_s, [&](bool thorough) {
    const bool moved = links_.progress(thorough);
    if (moved && (done = matcher.take_done(tickets))) return Look::done;
    if (heed == Heed::wake && woken_.load() && woken_.exchange(false)) return Look::done;
    return moved ? Look::moved : Look::nothing;
  });
  if (!in_time && heed == Heed::nothing) miss(tickets, timeout_s);
  return done;
}

void ShmTransport::miss(std::span<const Ticket> tickets, double timeout_s) {
  std::string text = fmt::format("rank {}: waited {} s for {}; last seen:", rank_, timeout_s,
                                 inbox_.matcher().describe(tickets.front()));
  for (int peer = 0; peer < neighbours_.count(); ++peer) {
    if (peer == neighbours_.index()) continue;
    text += fmt::format("{} rank {} {}", text.ends_with(':') ? "" : ",", ranks_[peer],
                        neighbours_.sighting_text(peer));
  }
  throw DeadlineExceeded(text);
}

void ShmTransport::close(double timeout_s) {
  using Look = shm::Neighbours::Look;
  const bool flushed = neighbours_.wait_until(timeout_s, [&](bool thorough) {
    if (links_.flushed()) return Look::done;
    return links_.progress(thorough) ? Look::moved : Look::nothing;
  });
  if (!flushed) {
    throw DeadlineExceeded(
        fmt::format("rank {}: what it sent was not taken within {} s", rank_, timeout_s));
  }
  neighbours_.leave();
}

ShmOptions with_ranks(ShmOptions options) {
  if (options.ranks.empty()) {
    options.ranks.resize(options.size);
    std::iota(options.ranks.begin(), options.ranks.end(), 0);
  }
  return options;
}

}  // namespace

std::unique_ptr<Transport> make_shm_transport(shm::Segment& segment, const ShmOptions& options) {
  return std::make_unique<ShmTransport>(std::nullopt, &segment, with_ranks(options));
}

std::unique_ptr<Transport> join_shm(int segment_fd, const ShmOptions& options) {
  return std::make_unique<ShmTransport>(shm::Segment::attach(segment_fd), nullptr,
                                        with_ranks(options));
}

}  // namespace convoy
