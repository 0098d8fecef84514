#include "train/balance.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/error.h"

namespace convoy {
namespace {

constexpr double kWorthwhile = 1.05;
constexpr int kMostWeight = 1'000'000;

// Seconds of a step, by the worker that takes longest.
double slowest_s(int batch, std::span<const int> weights, std::span<const double> speeds) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double worst = 0;
  for (std::size_t i = 0; i < weights.size(); ++i)
    worst = std::max(worst, batch * weights[i] / total / speeds[i]);
  return worst;
}

std::vector<double> with_unknown(std::span<const double> speeds) {
  std::vector<double> known(speeds.begin(), speeds.end());
  const double sum = std::accumulate(known.begin(), known.end(), 0.0);
  const auto count = std::count_if(known.begin(), known.end(), [](double s) { return s > 0; });
  for (double& speed : known)
    if (speed <= 0) speed = count > 0 ? sum / double(count) : 1.0;
  return known;
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

std::vector<int> balanced(int batch, std::span<const double> speeds) {
  const std::vector<double> known = with_unknown(speeds);
  const double sum = std::accumulate(known.begin(), known.end(), 0.0);
  const int least = batch >= int(known.size()) ? 1 : 0;
  std::vector<int> shares;
  for (const double speed : known) shares.push_back(std::max(least, int(batch * speed / sum)));
  // What rounding left, or took too much, one by one where it changes the time of a step least.
  const auto time = [&](std::size_t i, int samples) { return samples / known[i]; };
  for (int left = batch - std::accumulate(shares.begin(), shares.end(), 0); left != 0;) {
    std::size_t best = shares.size();
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (left < 0 && shares[i] <= least) continue;
      if (best == shares.size() || (left > 0 ? time(i, shares[i] + 1) < time(best, shares[best] + 1)
                                             : time(i, shares[i]) > time(best, shares[best])))
        best = i;
    }
    const int change = left > 0 ? 1 : -1;
    shares[best] += change;
    left -= change;
  }
  return shares;
}

std::vector<int> rebalanced(int batch, std::span<const int> weights,
                            std::span<const double> speeds) {
  const std::vector<double> known = with_unknown(speeds);
  std::vector<int> shares = balanced(batch, known);
  if (slowest_s(batch, weights, known) < kWorthwhile * slowest_s(batch, shares, known)) return {};
  return shares;
}

}  // namespace convoy
