#include "sync/wire_format.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

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

void GatheringFormat::sum(Communicator& communicator, std::size_t begin, std::span<float> values) {
  CHECK(begin <= arena_size_ && values.size() <= arena_size_ - begin,
        "values {} to {} of an arena of {}", begin, begin + values.size(), arena_size_);
  if (values.empty()) return;
  const bool real = communicator.transport().carries_bytes();
  if (!scratch_) scratch_.emplace(real);
  const std::size_t words = message_words(values.size()), n = std::size_t(communicator.size());
  const std::span<std::byte> bytes = scratch_->room(4 * words * n);
  const std::span<std::uint32_t> messages(reinterpret_cast<std::uint32_t*>(bytes.data()),
                                          words * n);
  if (real)
    encode(values, residual().subspan(begin, values.size()),
           messages.subspan(words * std::size_t(communicator.index()), words));
  communicator.all_gather(bytes, Element::f32);
  if (real) decode(messages, communicator.size(), values);
}

std::unique_ptr<WireFormat> make_wire_f32() { return std::make_unique<F32Format>(); }

const std::vector<std::string>& wire_formats() {
  static const std::vector<std::string> names = {"f32", "bf16", "topk", "1bit"};
  return names;
}

std::unique_ptr<WireFormat> make_wire_format(const std::string& text, std::size_t arena_size) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  if (name == "topk")
    return make_wire_topk(arena_size,
                          colon == std::string::npos
                              ? kDefaultShare
                              : parse_share(text, std::string_view(text).substr(colon + 1)));
  if (name != "f32" && name != "bf16" && name != "1bit")
    throw ConfigError(
        "--wire {}: unknown wire format; did you mean {}? Known: f32, bf16, topk:SHARE, 1bit",
        text.empty() ? "\"\"" : text, nearest(name, wire_formats()));
  if (colon != std::string::npos)
    throw ConfigError("--wire {}: {} takes nothing after a colon (topk alone does); use --wire {}",
                      text, name, name);
  if (name == "bf16") return make_wire_bf16(arena_size);
  if (name == "1bit") return make_wire_1bit(arena_size);
  return make_wire_f32();
}

}  // namespace convoy
