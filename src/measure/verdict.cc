#include "measure/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace convoy {
namespace {

constexpr double kLittle = 0.1;  // of a step: not what holds it up
constexpr double kMuch = 0.2;

double of(const RankTotals& rank, Phase phase) { return rank.seconds[std::size_t(phase)]; }

double computation_s(const RankTotals& rank) {
  return of(rank, Phase::forward) + of(rank, Phase::backward) + of(rank, Phase::update);
}

double training_s(const RankTotals& rank) {
  return of(rank, Phase::load) + computation_s(rank) + of(rank, Phase::communication) +
         of(rank, Phase::wait);
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// The rank that others waited for longest, with the share of all waiting that it caused.
struct Culprit {
  int rank = -1;
  double share = 0;
};
Culprit find_culprit(std::span<const RankTotals> ranks) {
  std::map<int, double> blamed_s;
  double all_s = 0;
  for (const RankTotals& rank : ranks) {
    if (rank.waited_rank >= 0) blamed_s[rank.waited_rank] += rank.waited_s;
    all_s += of(rank, Phase::wait);
  }
  Culprit worst;
  for (const auto& [rank, seconds] : blamed_s)
    if (all_s > 0 && seconds / all_s > worst.share) worst = {rank, seconds / all_s};
  return worst;
}

// What a rank does longer than the others do on average; empty where nothing stands out.
std::string excess(std::span<const RankTotals> ranks, int which) {
  const auto compare = [&](auto&& seconds) {
    double others_s = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (int(i) != which) others_s += seconds(ranks[i]) / double(ranks.size() - 1);
    return std::pair(seconds(ranks[std::size_t(which)]), others_s);
  };
  const auto [load_s, others_load_s] =
      compare([](const RankTotals& rank) { return of(rank, Phase::load); });
  const auto [compute_s, others_compute_s] = compare(computation_s);
  const bool load = load_s - others_load_s > compute_s - others_compute_s;
  const double own_s = load ? load_s : compute_s;
  const double others_s = load ? others_load_s : others_compute_s;
  if (own_s <= 1.05 * others_s) return "";
  const char* doing = load ? "loading data" : "computing";
  if (others_s <= 0.01 * own_s)
    return fmt::format(" ({} {:.3g} s, the others next to nothing)", doing, own_s);
  return fmt::format(" ({} {:.3g} times as long as the others)", doing, own_s / others_s);
}

std::string of_one(const RankTotals& rank) {
  const double load = of(rank, Phase::load) / training_s(rank);
  if (load > kMuch)
    return fmt::format(
        "loading data is {} of each step: the loader is the bottleneck (--loader-threads)",
        percent(load));
  return fmt::format("computation is {} of each step, loading data {}",
                     percent(computation_s(rank) / training_s(rank)), percent(load));
}

}  // namespace

std::string verdict(std::span<const RankTotals> ranks) {
  double all_s = 0, communication_s = 0, wait_s = 0, load_s = 0;
  for (const RankTotals& rank : ranks) {
    all_s += training_s(rank);
    communication_s += of(rank, Phase::communication);
    wait_s += of(rank, Phase::wait);
    load_s += of(rank, Phase::load);
  }
  if (!(all_s > 0)) return "";
  if (ranks.size() == 1) return of_one(ranks.front());
  const double communication = communication_s / all_s, wait = wait_s / all_s;
  const Culprit culprit = find_culprit(ranks);
  if (wait > kLittle && wait >= communication && culprit.share > 0.5 &&
      culprit.rank < int(ranks.size()))
    return fmt::format("waiting for rank {} is {} of each step: rank {} is the bottleneck{}",
                       culprit.rank, percent(wait * culprit.share), culprit.rank,
                       excess(ranks, culprit.rank));
  if (load_s / all_s > kMuch && load_s > communication_s + wait_s)
    return fmt::format("loading data is {} of each step: the loader is the bottleneck",
                       percent(load_s / all_s));
  if (communication + wait <= kLittle)
    return fmt::format(
        "communication is {} of each step: computation is the bottleneck, more "
        "workers would pay",
        percent(communication + wait));
  if (wait > communication)
    return fmt::format(
        "waiting for one another is {} of each step, by turns: workers of uneven "
        "pace are the bottleneck; communication is {}",
        percent(wait), percent(communication));
  return fmt::format("communication is {} of each step{}: {}", percent(communication),
                     wait > kLittle ? fmt::format(" and waiting {}", percent(wait)) : "",
                     communication > kMuch ? "that is the bottleneck" : "computation leads");
}

std::string verdict_with_servers(std::span<const RankTotals> workers) {
  double all_s = 0, idle_s = 0, load_s = 0;
  std::size_t slowest = 0;
  const auto busy_s = [&](std::size_t i) {
    return of(workers[i], Phase::load) + computation_s(workers[i]);
  };
  for (std::size_t i = 0; i < workers.size(); ++i) {
    all_s += training_s(workers[i]);
    idle_s += of(workers[i], Phase::communication) + of(workers[i], Phase::wait);
    load_s += of(workers[i], Phase::load);
    if (busy_s(i) > busy_s(slowest)) slowest = i;
  }
  if (!(all_s > 0)) return "";
  if (load_s / all_s > kMuch && load_s > idle_s)
    return fmt::format("loading data is {} of each step: the loader is the bottleneck",
                       percent(load_s / all_s));
  const std::string waiting =
      fmt::format("waiting for parameters is {} of each step", percent(idle_s / all_s));
  if (idle_s / all_s <= kLittle)
    return waiting + ": computation is the bottleneck, more workers would pay";
  const double others_s =
      workers.size() > 1 ? (all_s - idle_s - busy_s(slowest)) / double(workers.size() - 1) : 0;
  if (others_s > 0 && busy_s(slowest) > (1 + kMuch) * others_s)
    return fmt::format("{}: worker {} is the bottleneck{}", waiting, slowest,
                       excess(workers, int(slowest)));
  return waiting + ": servers and network are the bottleneck";
}

double ledger_error(std::span<const RankTotals> ranks) {
  double worst = 0;
  for (const RankTotals& rank : ranks) {
    const double sum_s = std::accumulate(rank.seconds.begin(), rank.seconds.end(), 0.0);
    if (rank.wall_s > 0) worst = std::max(worst, std::abs(sum_s - rank.wall_s) / rank.wall_s);
  }
  return worst;
}

std::string sparkline(std::span<const double> values, std::size_t width) {
  constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double value) { return std::isfinite(value); });
  if (finite.size() < 2 || width < 2) return "";
  const std::size_t columns = std::min(width, finite.size());
  std::vector<double> means;
  for (std::size_t i = 0; i < columns; ++i) {
    const auto begin = finite.begin() + std::ptrdiff_t(i * finite.size() / columns);
    const auto end = finite.begin() + std::ptrdiff_t((i + 1) * finite.size() / columns);
    double sum = 0;
    for (auto value = begin; value != end; ++value) sum += *value;
    means.push_back(sum / double(end - begin));
  }
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  std::string line;
  for (const double mean : means)
    line += kBlocks[*high > *low ? std::min(7, int(8 * (mean - *low) / (*high - *low))) : 0];
  return line;
}

}  // namespace convoy
