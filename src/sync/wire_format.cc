#include "sync/wire_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "sync/wire_parts.h"

namespace convoy {
namespace {

class F32Format final : public WireFormat {
 public:
  void sum(Communicator& communicator, std::size_t, std::span<float> values) override {
    if (!values.empty()) communicator.all_reduce(values);
  }
  std::size_t wire_bytes(std::size_t count, int ranks) const override {
    return ring_bytes(4 * count, ranks);
  }
};

// Gathers the messages of all ranks and adds them up in rank order on every rank, so that all get
// the same bytes.
class GatheringFormat final : public WireFormat {
 public:
  GatheringFormat(std::size_t arena_size, std::unique_ptr<WireCode> code)
      : arena_size_(arena_size), code_(std::move(code)) {}

  void sum(Communicator& communicator, std::size_t begin, std::span<float> values) override;
  std::size_t wire_bytes(std::size_t count, int ranks) const override {
    return count == 0 ? 0 : std::size_t(ranks - 1) * 4 * code_->words(count);
  }
  void keep_zero(std::vector<std::uint32_t> places) override { zeros_ = std::move(places); }
  // Takes its memory when it is first asked for: in a simulation without numbers, never.
  std::span<float> residual() override {
    if (residual_.size() != arena_size_) residual_.resize(arena_size_);
    return residual_;
  }

 private:
  static constexpr std::size_t kBlock = 4096;  // values whose sums stay in L1

  std::size_t arena_size_;
  std::unique_ptr<WireCode> code_;
  std::vector<float> residual_;
  std::vector<std::uint32_t> zeros_;
  std::optional<Scratch> scratch_;
};

void GatheringFormat::sum(Communicator& communicator, std::size_t begin, std::span<float> values) {
  CHECK(begin <= arena_size_ && values.size() <= arena_size_ - begin,
        "values {} to {} of an arena of {}", begin, begin + values.size(), arena_size_);
  if (values.empty()) return;
  const bool real = communicator.transport().carries_bytes();
  if (!scratch_) scratch_.emplace(real);
  const std::size_t words = code_->words(values.size()), n = std::size_t(communicator.size());
  const std::span<std::byte> bytes = scratch_->room(4 * words * n);
  const std::span<std::uint32_t> messages(reinterpret_cast<std::uint32_t*>(bytes.data()),
                                          words * n);
  if (real)
    code_->encode(values, residual().subspan(begin, values.size()),
                  messages.subspan(words * std::size_t(communicator.index()), words));
  communicator.all_gather(bytes, Element::f32);
  if (!real) return;
  for (std::size_t at = 0; at < values.size(); at += kBlock) {
    const std::span<float> block = values.subspan(at, std::min(kBlock, values.size() - at));
    std::fill(block.begin(), block.end(), 0.0f);
    for (std::size_t rank = 0; rank < n; ++rank)
      code_->add(messages.subspan(words * rank, words), at, 1, block);
  }
  zero_places(zeros_, begin, values);
}

constexpr double kDefaultShare = 0.01;

double parse_share(const std::string& text, std::string_view share) {
  double value = 0;
  const auto [end, error] = std::from_chars(share.data(), share.data() + share.size(), value);
  // Also false for what is not a number.
  if (error != std::errc() || end != share.data() + share.size() || !(value > 0 && value <= 1))
    throw ConfigError(
        "--wire {}: the share of values to send is \"{}\": expected a number above 0 and at most "
        "1, as in topk:0.01",
        text, share);
  return value;
}

}  // namespace

const std::vector<std::string>& wire_formats() {
  static const std::vector<std::string> names = {"f32", "bf16", "topk", "1bit"};
  return names;
}

void zero_places(std::span<const std::uint32_t> places, std::size_t begin, std::span<float> range) {
  for (auto place = std::lower_bound(places.begin(), places.end(), begin);
       place != places.end() && *place < begin + range.size(); ++place)
    range[*place - begin] = 0;
}

std::unique_ptr<WireCode> make_wire_code(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  if (name == "topk")
    return make_code_topk(colon == std::string::npos
                              ? kDefaultShare
                              : parse_share(text, std::string_view(text).substr(colon + 1)));
  if (name != "f32" && name != "bf16" && name != "1bit")
    throw ConfigError(
        "--wire {}: unknown wire format; did you mean {}? Known: f32, bf16, topk:SHARE, 1bit",
        text.empty() ? "\"\"" : text, nearest(name, wire_formats()));
  if (colon != std::string::npos)
    throw ConfigError("--wire {}: {} takes nothing after a colon (topk alone does); use --wire {}",
                      text, name, name);
  if (name == "bf16") return make_code_bf16();
  if (name == "1bit") return make_code_1bit();
  return nullptr;
}

std::unique_ptr<WireFormat> make_wire_format(const std::string& text, std::size_t arena_size) {
  if (text == "bf16") return make_wire_bf16(arena_size);
  if (std::unique_ptr<WireCode> code = make_wire_code(text))
    return std::make_unique<GatheringFormat>(arena_size, std::move(code));
  return std::make_unique<F32Format>();
}

}  // namespace convoy
