#include "sync/ps/policy.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/nearest.h"

namespace convoy {
namespace {

constexpr double kCompensation = 0.04;

// sync and backup.
class Rounds final : public ConsistencyPolicy {
 public:
  Rounds(int spare, bool drops_stale) : spare_(spare), drops_stale_(drops_stale) {}

  Verdict receive(std::int64_t staleness) const override {
    return drops_stale_ && staleness > 0 ? Verdict::drop : Verdict::hold;
  }
  // Workers that rest already, or are lost, are not waited for.
  bool complete(const SliceView& slice) const override {
    if (slice.held.empty()) return false;
    std::uint32_t epoch = epoch_of(slice.clocks[std::size_t(slice.held[0])]);
    for (const int worker : slice.held)
      epoch = std::min(epoch, epoch_of(slice.clocks[std::size_t(worker)]));
    int taking_part = 0, came = 0;
    for (std::size_t i = 0; i < slice.alive.size(); ++i)
      taking_part += slice.alive[i] && epoch_of(slice.clocks[i]) <= epoch;
    for (const int worker : slice.held) came += slice.alive[std::size_t(worker)];
    return came >= std::min(int(slice.alive.size()) - spare_, taking_part);
  }
  bool may_answer(const SliceView&, int) const override { return true; }
  bool in_rounds() const override { return spare_ == 0; }

 private:
  const int spare_;
  const bool drops_stale_;
};

class Async : public ConsistencyPolicy {
 public:
  Verdict receive(std::int64_t) const override { return Verdict::apply; }
  bool complete(const SliceView& slice) const override { return !slice.held.empty(); }
  bool may_answer(const SliceView&, int) const override { return true; }
  bool in_rounds() const override { return false; }
};

class BoundedStaleness final : public Async {
 public:
  explicit BoundedStaleness(int bound) : bound_(bound) {}
  bool may_answer(const SliceView& slice, int worker) const override {
    Clock slowest = slice.clocks[std::size_t(worker)];
    for (std::size_t i = 0; i < slice.alive.size(); ++i)
      if (slice.alive[i]) slowest = std::min(slowest, slice.clocks[i]);
    return slice.clocks[std::size_t(worker)] - slowest <= Clock(bound_);
  }

 private:
  const int bound_;
};

class StalenessAware final : public Async {
 public:
  double rate_factor(std::int64_t staleness) const override {
    return 1.0 / double(std::max<std::int64_t>(staleness, 1));
  }
};

class DelayCompensation final : public Async {
 public:
  explicit DelayCompensation(double factor) : factor_(factor) {}
  double compensation() const override { return factor_; }

 private:
  const double factor_;
};

struct Words {
  std::string name;
  std::optional<std::string> number;
};

Words words_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return {text, std::nullopt};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

template <typename Number>
Number number_in(const std::string& text, const Words& words, Number low, const char* expected) {
  Number number{};
  const std::string& digits = words.number ? *words.number : std::string();
  const char* const end = digits.data() + digits.size();
  const auto [after, error] = std::from_chars(digits.data(), end, number);
  if (!words.number || error != std::errc{} || after != end || !(number >= low) ||
      !(number <= Number(1'000'000)))
    throw ConfigError("--policy {}: {} needs {}, as in {}", text, words.name, expected,
                      words.name == "dc" ? "dc:0.04" : words.name + ":2");
  return number;
}

}  // namespace

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names = {"sync", "backup",          "async",
                                                 "ssp",  "staleness_aware", "dc"};
  return names;
}

std::unique_ptr<ConsistencyPolicy> make_policy(const std::string& text, int workers) {
  const Words words = words_of(text);
  const auto refuse_number = [&] {
    if (words.number)
      throw ConfigError("--policy {}: {} takes nothing after a colon; use --policy {}", text,
                        words.name, words.name);
  };
  if (words.name == "backup") {
    const int spare = number_in(text, words, 1, "a number of spare workers from 1 on");
    if (spare >= workers)
      throw ConfigError(
          "--policy {}: of {} workers, at most {} can be spare: the gradients of one must count",
          text, workers, workers - 1);
    return std::make_unique<Rounds>(spare, true);
  }
  if (words.name == "ssp") {
    const int bound = number_in(text, words, 0, "a number of steps, 0 or more");
    if (bound > 0) return std::make_unique<BoundedStaleness>(bound);
    return std::make_unique<Rounds>(0, false);
  }
  if (words.name == "dc")
    return std::make_unique<DelayCompensation>(
        words.number ? number_in(text, words, 0.0, "a factor, 0 or more") : kCompensation);
  refuse_number();
  if (words.name == "sync") return std::make_unique<Rounds>(0, false);
  if (words.name == "async") return std::make_unique<Async>();
  if (words.name == "staleness_aware") return std::make_unique<StalenessAware>();
  throw ConfigError(
      "--policy {}: unknown; did you mean {}? Known: sync, backup:K, async, ssp:S, "
      "staleness_aware, dc:L",
      text.empty() ? "\"\"" : text, nearest(words.name, policy_names()));
}

bool has_fixed_parts(const std::string& text) { return text == "sync" || text == "ssp:0"; }

bool combines(const std::string& text) {
  return has_fixed_parts(text) || text.starts_with("backup");
}

}  // namespace convoy
