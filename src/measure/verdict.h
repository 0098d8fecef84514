// What a run's ledgers say in one sentence, and a curve in one line.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>

#include "measure/phase.h"

namespace convoy {

// The totals of one rank.
struct RankTotals {
  std::array<double, kPhases> seconds{};
  double wall_s = 0;     // by the clock
  int waited_rank = -1;                                // for whom it waited longest
  double waited_s = 0;                                 // for that one
  double clock_offset_s = 0, clock_uncertainty_s = 0;  // against worker 0
};

// Where the time of a step goes and what holds it up: "computation is 93 % of each step: more
// workers would pay", "waiting for rank 2 is 31 % of each step: rank 2 is the bottleneck (it loads
// data 10.2 times as long as the others)". Empty where nothing was trained.
std::string verdict(std::span<const RankTotals> ranks);

// The same for workers that have parameter servers: "waiting for parameters is 41 % of each step:
// servers and network are the bottleneck".
std::string verdict_with_servers(std::span<const RankTotals> workers);

// How far a rank's phases are from summing to its wall time, at worst, as a share of it.
double ledger_error(std::span<const RankTotals> ranks);

// Values as blocks of eight heights, from the least to the largest, at most `width` of them: each
// the mean of its part. Empty for fewer than two finite values.
std::string sparkline(std::span<const double> values, std::size_t width);

}  // namespace convoy
