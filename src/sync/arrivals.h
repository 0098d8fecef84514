// Who keeps the others waiting. Every rank stamps its arrival at the last collective of each step;
// from time to time the stamps of all ranks, in the time of the first one, say who came last how
// often, and what it cost.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sync/communicator.h"

namespace convoy {

// The time of the group's first rank is the own Runtime's now_s() + offset_s, give or take the
// uncertainty.
struct ClockOffset {
  double offset_s = 0;
  double uncertainty_s = 0;
};

// Asks the first rank for its time, 20 times; of the shortest round trip, the answer was given in
// its middle. All ranks of the group call it. Blocks: the first rank answers one after the other.
// Where messages have no content, clocks are taken to agree.
ClockOffset align_clock(Communicator& communicator);

struct Blame {
  int rank = 0;
  std::size_t steps = 0;     // that were looked at
  double last_share = 0;     // of the steps, in which it came last
  double cost_s = 0;         // the mean, over those, of the time from the last but one to it
  double step_s = 0;         // the mean time from step to step; 0 for a single step
  double step_share = 0;     // cost_s of step_s
  double uncertainty_s = 0;  // of cost_s, for want of a common clock
};

class Arrivals {
 public:
  // Aligns the clocks; all ranks of the group call it.
  explicit Arrivals(Communicator& communicator);

  // Once per step, before the step's last collective starts. From any task, but one at a time.
  void stamp(double now_s) { stamps_.push_back(now_s); }

  // What the own clock was found to differ by the last time.
  const ClockOffset& offset() const { return offset_; }

  // What the stamps since the last time say, the same on every rank: a row for each of the group.
  // All ranks call it after the same number of stamps. Aligns the clocks again, and takes them to
  // have drifted evenly in between. Empty for one rank, for no stamps, and where messages have no
  // content.
  std::vector<Blame> settle(Communicator& communicator);

 private:
  std::vector<double> in_common_time(const ClockOffset& now, double now_s) const;

  ClockOffset offset_;
  double aligned_at_s_;  // by the own clock
  std::vector<double> stamps_;
};

// "rank 2 arrives last in 96 % of steps, costs 41 ms each (18 % of the step)", or empty where
// nobody stands out. To stand out a rank must have come last in more than half of the steps (in two
// thirds, of two ranks, of which one is always last), and by that have cost more than 5 % of
// the time of all steps, and more than the clocks' uncertainty; of fewer than 8 steps nothing is
// said.
std::string blame_line(std::span<const Blame> blames);

}  // namespace convoy
