#include "train/balance.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/error.h"

namespace convoy {
namespace {

constexpr double kWorthwhile = 1.05;
constexpr int kMostWeight = 1'000'000;

constexpr double kDiffers = 1.5;  // shares by this factor say something about each other's costs

// Seconds of a step, by the worker that takes longest.
double slowest_s(int batch, std::span<const int> weights, std::span<const StepCost> costs) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double worst = 0;
  for (std::size_t i = 0; i < weights.size(); ++i)
    worst = std::max(worst, costs[i].seconds(batch * weights[i] / total));
  return worst;
}

// Samples that a worker can do in so many seconds.
int within(const StepCost& cost, double seconds, int most) {
  const double samples = (seconds - cost.per_step_s()) / cost.per_sample_s();
  return int(std::clamp(samples, 0.0, double(most)));
}

}  // namespace

Balance parse_balance(const std::string& text, int workers) {
  Balance balance{.automatic = text == "auto",
                  .weights = std::vector<int>(std::size_t(workers), 1)};
  if (text == "auto" || text == "equal") return balance;
  balance.weights.clear();
  const char* place = text.data();
  const char* const end = place + text.size();
  for (;;) {
    int weight = 0;
    const auto [after, error] = std::from_chars(place, end, weight);
    if (error != std::errc{} || weight < 0 || weight > kMostWeight ||
        (after != end && *after != ':'))
      throw ConfigError(
          "--balance must be equal, auto, or a whole number for each worker as in "
          "20:1, not '{}'",
          text);
    balance.weights.push_back(weight);
    if (after == end) break;
    place = after + 1;
  }
  if (int(balance.weights.size()) != workers)
    throw ConfigError("--balance {} has {} weights: there are {} workers", text,
                      balance.weights.size(), workers);
  if (std::accumulate(balance.weights.begin(), balance.weights.end(), std::int64_t{0}) == 0)
    throw ConfigError("--balance {}: one weight at least must be above 0", text);
  return balance;
}

BatchShare share_of(std::span<const int> weights, int worker) {
  const auto own = weights.begin() + worker;
  const int from = std::accumulate(weights.begin(), own, 0);
  return {
      .from = from, .to = from + *own, .size = std::accumulate(weights.begin(), weights.end(), 0)};
}

void StepCost::see(double samples, double seconds) {
  if (samples <= 0 || seconds <= 0) return;
  const bool differs = latest_.samples > 0 && (samples > kDiffers * latest_.samples ||
                                               latest_.samples > kDiffers * samples);
  if (differs) other_ = latest_;
  latest_ = {samples, seconds};
}

// The line through both, unless it would fall, or begin below zero.
double StepCost::per_step_s() const {
  if (other_.samples == 0) return 0;
  const double slope = (latest_.seconds - other_.seconds) / (latest_.samples - other_.samples);
  const double start = latest_.seconds - slope * latest_.samples;
  const double least = std::min(latest_.seconds, other_.seconds);
  return std::clamp(start, 0.0, 0.99 * least);
}

double StepCost::per_sample_s() const { return (latest_.seconds - per_step_s()) / latest_.samples; }

std::vector<int> balanced(int batch, std::span<const StepCost> costs) {
  double low = 0, high = 0;  // of the time that a step takes
  for (const StepCost& cost : costs) high = std::max(high, cost.seconds(batch));
  const auto done_in = [&](double seconds) {
    std::int64_t samples = 0;
    for (const StepCost& cost : costs) samples += within(cost, seconds, batch);
    return samples;
  };
  for (int round = 0; round < 60; ++round) {
    const double middle = (low + high) / 2;
    (done_in(middle) >= batch ? high : low) = middle;
  }
  std::vector<int> shares;
  for (const StepCost& cost : costs) shares.push_back(within(cost, high, batch));
  // What rounding gave too much or too little, one by one where it matters least.
  for (int extra = std::accumulate(shares.begin(), shares.end(), 0) - batch; extra != 0;) {
    const int change = extra > 0 ? -1 : 1;
    const auto time_s = [&](std::size_t i) {
      return change < 0 ? -costs[i].seconds(shares[i]) : costs[i].seconds(shares[i] + 1);
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < shares.size(); ++i)
      if (time_s(i) < time_s(best)) best = i;
    shares[best] += change;
    extra += change;
  }
  return shares;
}

std::vector<int> rebalanced(int batch, std::span<const int> weights,
                            std::span<const StepCost> costs) {
  for (const StepCost& cost : costs)
    if (!cost.known()) return {};
  std::vector<int> shares = balanced(batch, costs);
  if (slowest_s(batch, weights, costs) < kWorthwhile * slowest_s(batch, shares, costs)) return {};
  return shares;
}

}  // namespace convoy
