// The ranks of one host, as one of them sees the others: who is there, who is lost; falling asleep
// and waking each other. Ranks are meant by their place on the host. One task owns it; ring_self()
// is for any task.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "world/shm/segment.h"
#include "world/shm/sentinel.h"
#include "world/transport.h"

namespace convoy::shm {

class Neighbours {
 public:
  struct Departure {
    bool proper;
    std::string why;
  };

  // What a look at the world found.
  enum class Look { done, moved, nothing };

  // Takes the rank's slot. Throws TransportError if it is taken.
  Neighbours(Segment& segment, int index);
  // Looks lost to the others, unless leave() was called.
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  Segment& segment() { return segment_; }
  int index() const { return index_; }
  int count() const { return count_; }

  // Waits until every rank is or was there; throws DeadlineExceeded.
  void meet(double timeout_s);
  // From now on this rank has ended properly.
  void leave();

  // Whether a rank is gone. What it wrote before is visible when this says so. Cheap while it is
  // there.
  std::optional<Departure> departure(int peer);

  // Wakes a rank if it sleeps. Call it after the change that it waits for.
  void ring(int peer) { ring(segment_.slot(peer)); }
  void ring_self() { ring(segment_.slot(index_)); }

  // Calls look(thorough) until it says done, or the time is over (false). Spins for a while after
  // everything that moved, then sleeps. A thorough look comes before every sleep and now and then
  // in between: it is the one that must ask for departures.
  template <typename LookFunction>
  bool wait_until(double timeout_s, LookFunction&& look);

  void publish(const Position& position);
  std::optional<Sighting> last_seen(int peer);
  // "in all_reduce #812, 64 bytes, 0.3 s ago", for a message about a wait that found no end.
  std::string sighting_text(int peer);

 private:
  static void ring(Slot& slot) {
    if (slot.asleep.load() != 0 && slot.asleep.exchange(0) != 0) wake(slot);
  }
  static void wake(Slot& slot);
  void ring_others();
  void sleep(std::uint32_t bell, double timeout_s);
  void open_pidfds();
  void poll_pidfds();

  Segment& segment_;
  const int index_;
  const int count_;
  std::vector<int> pidfds_;  // -1: none, or the own process
  std::vector<char> ended_;  // as its pidfd says
  std::vector<char> told_;   // departure() has said so
  double spin_s_ = 0;
  double next_poll_s_ = 0;
  std::optional<Sentinel> sentinel_;
};

template <typename LookFunction>
bool Neighbours::wait_until(double timeout_s, LookFunction&& look) {
  constexpr int kLooksBetweenClocks = 32;
  Slot& own = segment_.slot(index_);
  double end_s = -1, spin_from_s = -1;  // not known yet: short waits need no clock
  for (int looks = 1;; ++looks) {
    const bool thorough = looks % kLooksBetweenClocks == 0 || timeout_s <= 0;
    Look found = look(thorough);
    if (found == Look::done) return true;
    if (found == Look::moved) spin_from_s = -1;
    if (!thorough && (found == Look::moved || spin_s_ > 0)) {
      if (found == Look::nothing) _mm_pause();
      continue;
    }
    const double now = now_s();
    if (end_s < 0) end_s = now + timeout_s;
    if (now >= end_s) return look(true) == Look::done;
    if (spin_from_s < 0) spin_from_s = now;
    if (found == Look::moved || now < spin_from_s + spin_s_) continue;

    const std::uint32_t bell = own.bell.load();
    own.asleep.store(1);  // left at 1 by a look that throws, it costs the next who rings a call
    found = look(true);
    if (found == Look::nothing) sleep(bell, end_s - now);
    own.asleep.store(0);
    if (found == Look::done) return true;
    spin_from_s = -1;
  }
}

}  // namespace convoy::shm
