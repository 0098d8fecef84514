// The values of largest magnitude, with their places in the range; among equals those that come
// first.
//
// They are found exactly. A sample tells a magnitude that a few more values than needed are likely
// to have; one pass collects those, and among them the largest are chosen. Where they turn out to
// be too few, all values are candidates.
#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>

#include "sync/wire_parts.h"

namespace convoy {
namespace {

// Every so many values are a sample: a prime, so that no layout of the weights goes in step.
constexpr std::size_t kStride = 61;

// Magnitudes are ordered as their bits are.
std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffff; }

class TopkCode final : public WireCode {
 public:
  explicit TopkCode(double share) : share_(share) {}

  std::size_t words(std::size_t count) const override { return 2 * kept(count); }

  // The message is the places, in ascending order, then the values.
  void encode(std::span<const float> values, std::span<float> residual,
              std::span<std::uint32_t> message) override {
    CHECK(values.size() <= 0xffffffff, "a range of {} values: places have 32 bits", values.size());
    const std::size_t k = message.size() / 2;
    for (std::size_t i = 0; i < values.size(); ++i) residual[i] += values[i];
    select(residual, message.first(k));
    for (std::size_t i = 0; i < k; ++i) {
      float& value = residual[message[i]];
      message[k + i] = std::bit_cast<std::uint32_t>(value);
      value = 0;
    }
  }

  std::string fault(std::span<const std::uint32_t> message, std::size_t count) const override {
    const std::size_t k = message.size() / 2;
    for (std::size_t i = 0; i < k; ++i) {
      if (message[i] >= count || (i > 0 && message[i] <= message[i - 1]))
        return fmt::format("place {} after {}, of {}", message[i], i > 0 ? message[i - 1] : 0,
                           count);
      if (!std::isfinite(std::bit_cast<float>(message[k + i])))
        return "numbers which are not finite";
    }
    return {};
  }

  void add(std::span<const std::uint32_t> message, std::size_t at, float factor,
           std::span<float> sum) const override {
    const std::size_t k = message.size() / 2;
    const auto places = message.first(k);
    for (std::size_t i =
             std::size_t(std::lower_bound(places.begin(), places.end(), at) - places.begin());
         i < k && places[i] < at + sum.size(); ++i)
      sum[places[i] - at] += factor * std::bit_cast<float>(message[k + i]);
  }

 private:
  struct Candidate {
    std::uint32_t magnitude, place;
  };

  std::size_t kept(std::size_t count) const {
    return std::clamp<std::size_t>(std::size_t(std::ceil(share_ * double(count))), 1, count);
  }

  // A magnitude that `k` values are likely to reach.
  std::uint32_t guess(std::span<const float> values, std::size_t k) {
    sample_.clear();
    for (std::size_t i = kStride / 2; i < values.size(); i += kStride)
      sample_.push_back(magnitude(values[i]));
    // So many of the sample should be among the k largest; by chance it may be fewer.
    const double expected = double(k) / kStride;
    const auto rank = std::ptrdiff_t(expected + 4 * std::sqrt(expected) + 8);
    if (rank >= std::ssize(sample_)) return 0;
    std::nth_element(sample_.begin(), sample_.begin() + rank, sample_.end(), std::greater<>());
    return sample_[std::size_t(rank)];
  }

  void collect(std::span<const float> values, std::uint32_t least) {
    candidates_.clear();
    std::size_t i = 0;
    const __m256i below = _mm256_set1_epi32(int(least) - 1), rest = _mm256_set1_epi32(0x7fffffff);
    for (; i + 8 <= values.size(); i += 8) {
      const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values.data() + i));
      const __m256i reached = _mm256_cmpgt_epi32(_mm256_and_si256(bits, rest), below);
      for (auto mask = unsigned(_mm256_movemask_ps(_mm256_castsi256_ps(reached))); mask != 0;
           mask &= mask - 1)
        add_candidate(values, i + std::size_t(std::countr_zero(mask)));
    }
    for (; i < values.size(); ++i)
      if (magnitude(values[i]) >= least) add_candidate(values, i);
  }
  void add_candidate(std::span<const float> values, std::size_t place) {
    candidates_.push_back({magnitude(values[place]), std::uint32_t(place)});
  }

  // The candidates lie in the order of places, and so do those that are taken.
  void select(std::span<const float> values, std::span<std::uint32_t> places) {
    collect(values, guess(values, places.size()));
    if (candidates_.size() < places.size()) collect(values, 0);
    sample_.clear();
    for (const Candidate& candidate : candidates_) sample_.push_back(candidate.magnitude);
    const auto last = sample_.begin() + std::ssize(places) - 1;
    std::nth_element(sample_.begin(), last, sample_.end(), std::greater<>());
    const std::uint32_t least = *last;
    std::ptrdiff_t equals =
        std::ssize(places) -
        std::count_if(sample_.begin(), last, [&](std::uint32_t some) { return some > least; });
    auto place = places.begin();
    for (const Candidate& candidate : candidates_)
      if (candidate.magnitude > least || (candidate.magnitude == least && equals-- > 0))
        *place++ = candidate.place;
  }

  double share_;
  std::vector<std::uint32_t> sample_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::unique_ptr<WireCode> make_code_topk(double share) { return std::make_unique<TopkCode>(share); }

}  // namespace convoy
