// The values of largest magnitude, with their places in the range.
//
// They are found exactly, in two passes: magnitudes are ordered as their bits are, so a histogram
// of the upper bits tells in which bin the smallest one to be sent lies; what is in higher bins is
// sent, and of that bin the largest, among equals those that come first.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "sync/wire_parts.h"

namespace convoy {
namespace {

constexpr unsigned kShift = 19;  // eight exponent bits and four more
constexpr std::size_t kBins = std::size_t{1} << (31 - kShift);

std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffff; }

class TopkFormat final : public GatheringFormat {
 public:
  TopkFormat(std::size_t arena_size, double share) : GatheringFormat(arena_size), share_(share) {}

 private:
  struct Candidate {
    std::uint32_t magnitude, place;
  };

  std::size_t kept(std::size_t count) const {
    return std::clamp<std::size_t>(std::size_t(std::ceil(share_ * double(count))), 1, count);
  }
  std::size_t message_words(std::size_t count) const override { return 2 * kept(count); }

  // The message is the places, then the values.
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

  void decode(std::span<const std::uint32_t> messages, int ranks, std::span<float> sum) override {
    std::fill(sum.begin(), sum.end(), 0.0f);
    const std::size_t k = messages.size() / std::size_t(ranks) / 2;
    for (std::size_t rank = 0; rank < std::size_t(ranks); ++rank) {
      const std::span message = messages.subspan(2 * k * rank, 2 * k);
      for (std::size_t i = 0; i < k; ++i) {
        CHECK(message[i] < sum.size(), "place {} of {} values", message[i], sum.size());
        sum[message[i]] += std::bit_cast<float>(message[k + i]);
      }
    }
  }

  // The bin in which the smallest of the `k` largest lies, and how many lie in higher ones.
  struct Border {
    std::size_t bin = kBins, above = 0;
  };
  Border find_border(std::span<const float> values, std::size_t k) {
    bins_.fill(0);
    for (const float value : values) ++bins_[magnitude(value) >> kShift];
    Border border;
    for (std::size_t in_bin = 0; border.above + in_bin < k;) {
      border.above += in_bin;
      in_bin = bins_[--border.bin];
    }
    return border;
  }

  void select(std::span<const float> values, std::span<std::uint32_t> places) {
    const Border border = find_border(values, places.size());
    const std::uint32_t lowest = std::uint32_t(border.bin) << kShift;
    const std::uint32_t above = std::uint32_t(border.bin + 1) << kShift;
    std::size_t found = 0;
    candidates_.clear();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t size = magnitude(values[i]);
      if (size < lowest) [[likely]]
        continue;
      if (size >= above)
        places[found++] = std::uint32_t(i);
      else
        candidates_.push_back({size, std::uint32_t(i)});
    }
    const std::size_t missing = places.size() - found;
    std::nth_element(candidates_.begin(), candidates_.begin() + std::ptrdiff_t(missing),
                     candidates_.end(), [](const Candidate& a, const Candidate& b) {
                       return a.magnitude != b.magnitude ? a.magnitude > b.magnitude
                                                         : a.place < b.place;
                     });
    for (std::size_t i = 0; i < missing; ++i) places[found + i] = candidates_[i].place;
  }

  double share_;
  std::array<std::uint32_t, kBins> bins_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::unique_ptr<WireFormat> make_wire_topk(std::size_t arena_size, double share) {
  return std::make_unique<TopkFormat>(arena_size, share);
}

}  // namespace convoy
