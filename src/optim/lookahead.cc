#include "optim/lookahead.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/float_arena.h"
#include "kernels/parallel.h"

namespace convoy {
namespace {

constexpr int kMostUpdates = 1'000'000;

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const char* end = text.data() + text.size();
  return !text.empty() && std::from_chars(text.data(), end, number).ptr == end;
}

class Lookahead : public Optimizer, public WeightUpdate {
 public:
  Lookahead(const LookaheadOptions& options, std::unique_ptr<Optimizer> optimizer,
            std::span<float> values)
      : options_(options),
        optimizer_(std::move(optimizer)),
        values_(values),
        slow_(values.size()) {}

  void update(std::size_t begin, std::size_t end, float rate, std::int64_t number) override {
    const auto each = [&](auto change) {
      parallel_for(end - begin, std::size_t{1} << 14,
                   [&](std::size_t from, std::size_t to) { change(begin + from, begin + to); });
    };
    if (number == 1) each([this](std::size_t from, std::size_t to) { start(from, to); });
    optimizer_->update(begin, end, rate, number);
    if (!due(number)) return;
    const float take = taken(number);
    each([&](std::size_t from, std::size_t to) { draw_back(from, to, take); });
  }

  WeightUpdate* in_backward(float rate, std::int64_t number) override {
    number_ = number;
    inner_ = optimizer_->in_backward(rate, number);
    return inner_ ? this : nullptr;
  }

  void apply(const float* weight, std::span<const float> gradient) override {
    const auto begin = std::size_t(weight - values_.data()), end = begin + gradient.size();
    if (number_ == 1) start(begin, end);
    inner_->apply(weight, gradient);
    if (due(number_)) draw_back(begin, end, taken(number_));
  }

  std::vector<NamedArena> state() override {
    std::vector<NamedArena> arenas = optimizer_->state();
    arenas.push_back({"slow", slow_.span()});
    return arenas;
  }
  void place_state(const Allocate& allocate) override {
    optimizer_->place_state(allocate);
    slow_.place(allocate(slow_.size()));
  }
  bool elementwise() const override { return optimizer_->elementwise(); }
  std::size_t size() const override { return optimizer_->size(); }

 private:
  bool due(std::int64_t number) const {
    return number % options_.every == 0 || number == options_.updates;
  }

  // Of the weights; the rest of the average is as before.
  float taken(std::int64_t number) const {
    const double progress =
        std::min(1.0, double(number) / double(std::max<std::int64_t>(options_.updates, 1)));
    return float(1 - std::pow(options_.keep, options_.every) * std::pow(progress, 3));
  }

  // The average begins as the weights do.
  void start(std::size_t begin, std::size_t end) {
    std::copy(values_.data() + begin, values_.data() + end, slow_.span().data() + begin);
  }

  void draw_back(std::size_t begin, std::size_t end, float take) {
    float* const slow = slow_.span().data();
    for (std::size_t i = begin; i < end; ++i) {
      slow[i] += take * (values_[i] - slow[i]);
      values_[i] = slow[i];
    }
  }

  LookaheadOptions options_;
  std::unique_ptr<Optimizer> optimizer_;
  std::span<float> values_;
  FloatArena slow_;
  WeightUpdate* inner_ = nullptr;  // of the backward pass under way,
  std::int64_t number_ = 0;        // which ends in this update
};

}  // namespace

LookaheadOptions parse_lookahead(std::string_view text, std::string_view where) {
  LookaheadOptions options;
  if (text.empty()) return options;
  const std::size_t colon = std::min(text.find(':'), text.size());
  const bool fits = read_number(text.substr(0, colon), options.every) && colon < text.size() &&
                    read_number(text.substr(colon + 1), options.keep);
  if (!fits || options.every < 1 || options.every > kMostUpdates ||
      !(options.keep > 0 && options.keep < 1))
    throw ConfigError(
        "{} must be UPDATES:KEEP with 1 to {} updates and a share between 0 and 1, as 5:0.95, not "
        "'{}'",
        where, kMostUpdates, text);
  return options;
}

std::unique_ptr<Optimizer> with_lookahead(const LookaheadOptions& options,
                                          std::unique_ptr<Optimizer> optimizer,
                                          std::span<float> values) {
  if (options.every == 0) return optimizer;
  return std::make_unique<Lookahead>(options, std::move(optimizer), values);
}

}  // namespace convoy
