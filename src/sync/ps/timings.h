// How long something took, many times over: mean, median and tails.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace convoy {

class Timings {
 public:
  void add(double seconds) {
    ++count_;
    sum_ += seconds;
    if (kept_.size() < kMost)
      kept_.push_back(float(seconds));
    else  // later ones take the place of earlier ones, evenly
      kept_[std::size_t(count_ * 2654435761u % kMost)] = float(seconds);
  }
  void add(const Timings& other) {
    count_ += other.count_;
    sum_ += other.sum_;
    kept_.insert(kept_.end(), other.kept_.begin(), other.kept_.end());
  }
  std::uint64_t count() const { return count_; }
  double sum_s() const { return sum_; }
  double mean_s() const { return count_ > 0 ? sum_ / double(count_) : 0; }
  // Below which a share of them lie.
  double quantile_s(double share) const {
    if (kept_.empty()) return 0;
    std::vector<float> sorted = kept_;
    const auto place = sorted.begin() + std::ptrdiff_t(std::min(double(sorted.size() - 1),
                                                                share * double(sorted.size())));
    std::nth_element(sorted.begin(), place, sorted.end());
    return *place;
  }
  nlohmann::json to_json() const {
    return {{"count", count_},
            {"mean_ms", 1e3 * mean_s()},
            {"median_ms", 1e3 * quantile_s(0.5)},
            {"p95_ms", 1e3 * quantile_s(0.95)},
            {"p99_ms", 1e3 * quantile_s(0.99)}};
  }

 private:
  static constexpr std::size_t kMost = 1 << 16;
  std::uint64_t count_ = 0;
  double sum_ = 0;
  std::vector<float> kept_;
};

}  // namespace convoy
