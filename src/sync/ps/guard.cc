#include "sync/ps/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace convoy {
namespace {

constexpr int kWindow = 8;             // parts for each worker that the loss is smoothed over
constexpr int kUnderWay = 3;           // parts of each that may be of weights that were given up
constexpr int kPatience = 60;          // parts for each worker after which it must have fallen
constexpr double kFallen = 0.9;        // of the first loss
constexpr double kDiverged = 2;        // times the lowest, and
constexpr double kAbove = 0.5;         // at least so much above it
constexpr double kWorthKeeping = 0.8;  // of the loss of the weights that are kept

}  // namespace

LossGuard::LossGuard(bool on, std::string policy, int workers)
    : on_(on), policy_(std::move(policy)), workers_(workers) {}

std::optional<LossGuard::Move> LossGuard::stricter(const std::string& reason) {
  if (policy_ == "sync" || policy_ == "ssp:0") return std::nullopt;
  policy_ = policy_.starts_with("ssp") ? "sync" : "ssp:1";
  seen_ = 0;
  ignored_ = std::int64_t(kUnderWay) * workers_;
  return Move{Move::Kind::go_back, policy_, reason};
}

std::optional<LossGuard::Move> LossGuard::see(double loss) {
  if (!on_) return std::nullopt;
  if (!std::isfinite(loss)) return stricter("the loss is not a finite number");
  if (ignored_ > 0) {
    --ignored_;
    return std::nullopt;
  }
  ++seen_;
  smooth_ += (loss - smooth_) / double(std::min(seen_, std::int64_t(kWindow) * workers_));
  if (seen_ < workers_) return std::nullopt;
  if (first_ == 0) first_ = lowest_ = smooth_;
  if (smooth_ < kFallen * first_) fallen_ = true;
  if (smooth_ > kDiverged * lowest_ && smooth_ > lowest_ + kAbove)
    return stricter(fmt::format("the loss rose from {:.3f} to {:.3f}", lowest_, smooth_));
  if (!fallen_ && seen_ > std::int64_t(kPatience) * workers_)
    return stricter(fmt::format("the loss does not fall: {:.3f}, and {:.3f} after {} gradients",
                                first_, smooth_, seen_));
  if (smooth_ < kWorthKeeping * lowest_) {
    lowest_ = smooth_;
    return Move{Move::Kind::keep, policy_, {}};
  }
  return std::nullopt;
}

}  // namespace convoy
