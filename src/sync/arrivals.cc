#include "sync/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace convoy {
namespace {

constexpr Tag kAsk = 0x3ffe0000, kTell = kAsk + 1;
constexpr double kWait_s = 120;
constexpr int kRoundTrips = 20;

// Steps that are gathered at once, so that the memory for it stays small however many there are.
constexpr std::size_t kStepsAtOnce = 1024;

std::span<std::byte> bytes_of(double& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

void tell_time(Communicator& communicator, int rank) {
  Transport& transport = communicator.transport();
  for (int i = 0; i < kRoundTrips; ++i) {
    double time_s = 0;
    transport.wait(transport.recv(rank, kAsk, bytes_of(time_s)), kWait_s);
    time_s = communicator.runtime().now_s();
    transport.wait(transport.send(rank, kTell, bytes_of(time_s)), kWait_s);
  }
}

ClockOffset ask_time(Communicator& communicator, int rank) {
  Transport& transport = communicator.transport();
  Runtime& runtime = communicator.runtime();
  ClockOffset best{0, std::numeric_limits<double>::infinity()};
  for (int i = 0; i < kRoundTrips; ++i) {
    double question = 0, time_s = 0;
    const Ticket answer = transport.recv(rank, kTell, bytes_of(time_s));
    const double begin_s = runtime.now_s();
    transport.wait(transport.send(rank, kAsk, bytes_of(question)), kWait_s);
    transport.wait(answer, kWait_s);
    const double half_s = (runtime.now_s() - begin_s) / 2;
    if (half_s < best.uncertainty_s) best = {time_s - (begin_s + half_s), half_s};
  }
  if (!transport.carries_bytes()) best.offset_s = 0;
  return best;
}

// For every rank of the group in turn, one value of each.
std::vector<double> gather(Communicator& communicator, std::span<const double> own) {
  std::vector<double> all(own.size() * std::size_t(communicator.size()));
  std::copy(own.begin(), own.end(),
            all.begin() + std::ptrdiff_t(own.size()) * communicator.index());
  communicator.all_gather(std::as_writable_bytes(std::span(all)), Element::i64);
  return all;
}

// Adds up who was last, and by how much, step by step.
class Tally {
 public:
  explicit Tally(std::size_t ranks) : times_last_(ranks), costs_s_(ranks) {}

  // arrivals[r * steps + s] is the time of rank r in step s.
  void add(std::span<const double> arrivals, std::size_t steps) {
    for (std::size_t step = 0; step < steps; ++step) {
      std::size_t last = 0;
      double latest_s = arrivals[step], before_s = -std::numeric_limits<double>::infinity();
      for (std::size_t rank = 1; rank < times_last_.size(); ++rank) {
        const double time_s = arrivals[rank * steps + step];
        if (time_s > latest_s) {
          before_s = std::exchange(latest_s, time_s);
          last = rank;
        } else {
          before_s = std::max(before_s, time_s);
        }
      }
      ++times_last_[last];
      costs_s_[last] += latest_s - before_s;
      if (steps_++ == 0) begin_s_ = latest_s;
      end_s_ = latest_s;
    }
  }

  Blame blame(std::size_t rank) const {
    Blame blame{.steps = steps_};
    blame.last_share = double(times_last_[rank]) / double(steps_);
    if (times_last_[rank] > 0) blame.cost_s = costs_s_[rank] / double(times_last_[rank]);
    if (steps_ > 1) blame.step_s = (end_s_ - begin_s_) / double(steps_ - 1);
    if (blame.step_s > 0) blame.step_share = blame.cost_s / blame.step_s;
    return blame;
  }

 private:
  std::vector<std::size_t> times_last_;
  std::vector<double> costs_s_;
  std::size_t steps_ = 0;
  double begin_s_ = 0, end_s_ = 0;  // when the last rank came in the first step, in the last step
};

std::string time_text(double seconds) {
  const double ms = 1e3 * seconds;
  if (ms >= 9.95) return fmt::format("{:.0f} ms", ms);
  if (ms >= 0.0995) return fmt::format("{:.1f} ms", ms);
  return fmt::format("{:.0f} us", 1e6 * seconds);
}

}  // namespace

ClockOffset align_clock(Communicator& communicator) {
  const std::vector<int>& ranks = communicator.group().ranks;
  if (communicator.index() > 0) return ask_time(communicator, ranks[0]);
  for (std::size_t i = 1; i < ranks.size(); ++i) tell_time(communicator, ranks[i]);
  return {};
}

Arrivals::Arrivals(Communicator& communicator)
    : offset_(align_clock(communicator)), aligned_at_s_(communicator.runtime().now_s()) {}

std::vector<double> Arrivals::in_common_time(const ClockOffset& now, double now_s) const {
  const double elapsed_s = now_s - aligned_at_s_;
  const double drift = elapsed_s > 0 ? (now.offset_s - offset_.offset_s) / elapsed_s : 0;
  std::vector<double> common;
  common.reserve(stamps_.size());
  for (const double stamp_s : stamps_)
    common.push_back(stamp_s + offset_.offset_s + drift * (stamp_s - aligned_at_s_));
  return common;
}

std::vector<Blame> Arrivals::settle(Communicator& communicator) {
  const std::size_t n = std::size_t(communicator.size());
  const ClockOffset before = offset_, now = align_clock(communicator);
  const double now_s = communicator.runtime().now_s();
  const std::vector<double> own = in_common_time(now, now_s);
  stamps_.clear();
  offset_ = now;
  aligned_at_s_ = now_s;

  const double uncertainty_s = std::max(before.uncertainty_s, now.uncertainty_s);
  const double about[] = {double(own.size()), uncertainty_s};
  const std::vector<double> about_all = gather(communicator, about);
  const bool real = communicator.transport().carries_bytes();
  double worst_s = 0;
  for (std::size_t rank = 0; real && rank < n; ++rank) {
    CHECK(about_all[2 * rank] == double(own.size()), "rank {} stamped {} steps, this one {}",
          communicator.group().ranks[rank], about_all[2 * rank], own.size());
    worst_s = std::max(worst_s, about_all[2 * rank + 1]);
  }

  Tally tally(n);
  for (std::size_t begin = 0; begin < own.size(); begin += kStepsAtOnce) {
    const std::size_t steps = std::min(kStepsAtOnce, own.size() - begin);
    const std::vector<double> all = gather(communicator, std::span(own).subspan(begin, steps));
    if (real && n > 1) tally.add(all, steps);
  }
  if (!real || n < 2 || own.empty()) return {};
  std::vector<Blame> blames;
  for (std::size_t rank = 0; rank < n; ++rank) {
    blames.push_back(tally.blame(rank));
    blames.back().rank = communicator.group().ranks[rank];
    blames.back().uncertainty_s = worst_s;
  }
  return blames;
}

std::string blame_line(std::span<const Blame> blames) {
  const auto worst =
      std::max_element(blames.begin(), blames.end(),
                       [](const Blame& a, const Blame& b) { return a.last_share < b.last_share; });
  if (worst == blames.end() || worst->steps < 8) return "";
  const double often = blames.size() == 2 ? 2.0 / 3 : 0.5;
  if (worst->last_share <= often || worst->last_share * worst->step_share <= 0.05 ||
      worst->cost_s <= worst->uncertainty_s)
    return "";
  return fmt::format(
      "rank {} arrives last in {:.0f} % of steps, costs {} each ({:.0f} % of the step)",
      worst->rank, 100 * worst->last_share, time_text(worst->cost_s), 100 * worst->step_share);
}

}  // namespace convoy
