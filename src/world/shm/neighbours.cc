#include "world/shm/neighbours.h"

#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "world/futex.h"

namespace convoy::shm {
namespace {

constexpr double kSpin_s = 20e-6;
// The kernel wakes a sleeper when a peer dies. Where it does not, this is how long a death stays
// unseen.
constexpr double kPollEvery_s = 0.5;

constexpr int kMaskWords = std::tuple_size_v<decltype(Slot::cpus)>;
using CpuMask = std::array<std::uint64_t, kMaskWords>;
static_assert(sizeof(CpuMask) == sizeof(cpu_set_t));
static_assert(Segment::kMostRanks <= kMostFutexWatches);

CpuMask own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return std::bit_cast<CpuMask>(set);
}

// Who spins takes a core away from the others when there are not enough of them.
double spin_for(Segment& segment) {
  CpuMask together{};
  for (int rank = 0; rank < segment.ranks(); ++rank)
    for (int word = 0; word < kMaskWords; ++word)
      together[word] |= segment.slot(rank).cpus[word].load();
  int cpus = 0;
  for (const std::uint64_t word : together) cpus += std::popcount(word);
  return cpus >= segment.ranks() ? kSpin_s : 0;
}

}  // namespace

Neighbours::Neighbours(Segment& segment, int index)
    : segment_(segment),
      index_(index),
      count_(segment.ranks()),
      pidfds_(count_, -1),
      ended_(count_),
      told_(count_) {
  CHECK(index >= 0 && index < count_, "rank {} of {} on this host", index, count_);
  Slot& own = segment_.slot(index_);
  std::int32_t nobody = 0;
  if (!own.pid.compare_exchange_strong(nobody, getpid())) {
    throw TransportError(
        fmt::format("shared memory: rank {} of this host is taken by process {}", index, nobody));
  }
  const CpuMask cpus = own_cpus();
  for (int word = 0; word < kMaskWords; ++word) own.cpus[word].store(cpus[word]);
  sentinel_.emplace(segment_, index_);
  own.presence.store(Presence::present);
  ring_others();
}

Neighbours::~Neighbours() {
  Slot& own = segment_.slot(index_);
  if (own.presence.load() == Presence::present) own.presence.store(Presence::lost);
  ring_others();
  for (const int pidfd : pidfds_)
    if (pidfd >= 0) close(pidfd);
}

void Neighbours::meet(double timeout_s) {
  std::string missing;
  const bool all = wait_until(timeout_s, [&](bool) {
    missing.clear();
    for (int peer = 0; peer < count_; ++peer)
      if (segment_.slot(peer).presence.load() == Presence::absent)
        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", peer);
    return missing.empty() ? Look::done : Look::nothing;
  });
  if (!all) {
    throw DeadlineExceeded(
        fmt::format("shared memory: after {} s these ranks of the host (of {}) have not come: {}",
                    timeout_s, count_, missing));
  }
  spin_s_ = spin_for(segment_);
  open_pidfds();
}

void Neighbours::leave() {
  segment_.slot(index_).presence.store(Presence::closed);
  ring_others();
}

std::optional<Neighbours::Departure> Neighbours::departure(int peer) {
  // In this order: who leaves properly says so before it ends.
  const bool died = pulse_died(segment_.pulse(peer, index_).word.load()) || ended_[peer];
  const Presence presence = segment_.slot(peer).presence.load();
  if (!died && presence <= Presence::present) return std::nullopt;
  told_[peer] = 1;
  if (presence == Presence::closed) return Departure{true, "it has ended its work"};
  if (presence == Presence::lost) return Departure{false, "it gave up"};
  return Departure{false, fmt::format("its process {} on this host has ended suddenly",
                                      segment_.slot(peer).pid.load())};
}

void Neighbours::wake(Slot& slot) {
  slot.bell.fetch_add(1);
  futex_wake(slot.bell);
}

void Neighbours::ring_others() {
  for (int peer = 0; peer < count_; ++peer)
    if (peer != index_) ring(peer);
}

void Neighbours::sleep(std::uint32_t bell, double timeout_s) {
  std::array<FutexWatch, kMostFutexWatches> watches;
  watches[0] = {&segment_.slot(index_).bell, bell};
  int count = 1;
  for (int peer = 0; peer < count_; ++peer) {
    if (peer == index_ || told_[peer]) continue;
    const std::atomic<std::uint32_t>& word = segment_.pulse(peer, index_).word;
    const std::uint32_t value = word.load();
    if (pulse_beats(value)) {
      watches[count++] = {&word, value};
    } else if (segment_.slot(peer).presence.load() != Presence::absent) {
      return;  // it has just gone
    }
  }
  futex_wait_any({watches.data(), static_cast<std::size_t>(count)},
                 std::min(timeout_s, kPollEvery_s));
  if (const double now = now_s(); now >= next_poll_s_) {
    next_poll_s_ = now + kPollEvery_s;
    poll_pidfds();
  }
}

void Neighbours::open_pidfds() {
  for (int peer = 0; peer < count_; ++peer) {
    const pid_t pid = segment_.slot(peer).pid.load();
    if (pid != getpid()) pidfds_[peer] = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  }
}

void Neighbours::poll_pidfds() {
  std::vector<pollfd> ends;
  for (const int pidfd : pidfds_) ends.push_back({pidfd, POLLIN, 0});
  if (poll(ends.data(), ends.size(), 0) <= 0) return;
  for (int peer = 0; peer < count_; ++peer)
    if (ends[peer].revents & POLLIN) ended_[peer] = 1;
}

void Neighbours::publish(const Position& position) {
  using Words = std::array<std::uint64_t, std::tuple_size_v<decltype(Slot::position)>>;
  const Words words = std::bit_cast<Words>(position);
  Slot& own = segment_.slot(index_);
  const std::uint32_t version = own.version.load(std::memory_order_relaxed);
  own.version.store(version + 1, std::memory_order_relaxed);
  own.told_at_s.store(now_s(), std::memory_order_release);
  for (std::size_t i = 0; i < words.size(); ++i)
    own.position[i].store(words[i], std::memory_order_release);
  own.version.store(version + 2, std::memory_order_release);
}

std::optional<Sighting> Neighbours::last_seen(int peer) {
  std::array<std::uint64_t, std::tuple_size_v<decltype(Slot::position)>> words;
  const Slot& slot = segment_.slot(peer);
  // A rank that died while it wrote leaves the version odd for ever: then what there is has to do.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const std::uint32_t before = slot.version.load(std::memory_order_acquire);
    if (before == 0) return std::nullopt;
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] = slot.position[i].load(std::memory_order_acquire);
    const double told_at_s = slot.told_at_s.load(std::memory_order_acquire);
    const bool torn = before % 2 != 0 || slot.version.load(std::memory_order_relaxed) != before;
    if (torn && attempt < 999) continue;
    Sighting sighting{std::bit_cast<Position>(words), now_s() - told_at_s};
    sighting.position.place.back() = 0;
    return sighting;
  }
  return std::nullopt;
}

std::string Neighbours::sighting_text(int peer) {
  const std::optional<Sighting> sighting = last_seen(peer);
  if (!sighting) return "nowhere";
  return fmt::format("in {}, {:.1f} s ago", sighting->position.text(), sighting->age_s);
}

}  // namespace convoy::shm
