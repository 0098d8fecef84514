#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "base/float_arena.h"
#include "base/nearest.h"
#include "kernels/optimizer.h"
#include "kernels/parallel.h"

namespace convoy {
namespace {

// Neighbouring parameters that are updated alike: for SGD and Adam those of one weight decay and
// rate, for LARS one parameter. Frozen parameters are in none.
struct Run {
  std::size_t begin = 0, end = 0;
  float decay = 0;
  float rate = 1;       // factor of the rate
  bool adapts = false;  // lars: has a rate of its own
};

// What all optimizers share: the arenas, and the runs that cover them.
class RunOptimizer : public Optimizer {
 public:
  RunOptimizer(std::vector<Run> runs, std::span<float> values, std::span<const float> gradients)
      : runs_(std::move(runs)), values_(values), gradients_(gradients) {}

 protected:
  std::vector<Run>::const_iterator run_at(std::size_t position) const {
    return std::partition_point(runs_.begin(), runs_.end(),
                                [&](const Run& run) { return run.end <= position; });
  }

  std::size_t size() const override { return values_.size(); }
  bool elementwise() const override { return true; }

  // Calls body(at, count, run) for pieces that cover [begin, end), on all threads.
  template <typename Body>
  void for_each_piece(std::size_t begin, std::size_t end, Body&& body) const {
    CHECK(begin <= end && end <= values_.size(), "range {} to {} of {}", begin, end,
          values_.size());
    constexpr std::size_t kGrain = 1 << 13;
    parallel_for(end - begin, kGrain, [&](std::size_t from, std::size_t to) {
      std::size_t at = begin + from;
      for (auto run = run_at(at); run != runs_.end() && at < begin + to; ++run) {
        at = std::max(at, run->begin);
        const std::size_t stop = std::min(begin + to, run->end);
        if (at < stop) body(at, stop - at, *run);
        at = std::max(at, stop);
      }
    });
  }

  std::vector<Run> runs_;
  std::span<float> values_;
  std::span<const float> gradients_;
};

// Rules that need no more than a number's own gradient.
class ElementwiseOptimizer : public RunOptimizer, public WeightUpdate {
 public:
  using RunOptimizer::RunOptimizer;

  void update(std::size_t begin, std::size_t end, float rate, std::int64_t update) override {
    for_each_piece(begin, end, [&](std::size_t at, std::size_t count, const Run& run) {
      move(at, gradients_.subspan(at, count),
           {.rate = rate * run.rate, .decay = run.decay, .update = update});
    });
  }

  WeightUpdate* in_backward(float rate, std::int64_t update) override {
    during_backward_ = {.rate = rate, .update = update};
    return this;
  }

  void apply(const float* weight, std::span<const float> gradient) override {
    const auto at = std::size_t(weight - values_.data());
    Pace pace = during_backward_;
    const Run& run = *run_at(at);
    pace.rate *= run.rate;
    pace.decay = run.decay;
    move(at, gradient, pace);
  }

 protected:
  struct Pace {
    float rate = 0;
    float decay = 0;
    std::int64_t update = 1;
  };
  // Moves the numbers that begin at `at`, on the calling thread.
  virtual void move(std::size_t at, std::span<const float> gradients, const Pace& pace) = 0;

 private:
  Pace during_backward_;
};

class Sgd : public ElementwiseOptimizer {
 public:
  Sgd(const OptimizerOptions& options, std::vector<Run> runs, std::span<float> values,
      std::span<const float> gradients)
      : ElementwiseOptimizer(std::move(runs), values, gradients),
        momentum_(options.momentum),
        nesterov_(options.nesterov),
        velocity_(options.momentum > 0 ? values.size() : 0) {}

  std::vector<NamedArena> state() override {
    if (momentum_ == 0) return {};
    return {{"momentum", velocity_.span()}};
  }
  void place_state(const Allocate& allocate) override {
    if (momentum_ > 0) velocity_.place(allocate(size()));
  }

 private:
  void move(std::size_t at, std::span<const float> gradients, const Pace& pace) override {
    const auto values = values_.subspan(at, gradients.size());
    const MomentumStep step{.rate = pace.rate, .momentum = momentum_, .decay = pace.decay};
    if (momentum_ == 0) return sgd_step(values, gradients, pace.rate, pace.decay);
    const auto velocity = velocity_.span().subspan(at, gradients.size());
    if (nesterov_)
      nesterov_step(values, gradients, velocity, step);
    else
      momentum_step(values, gradients, velocity, step);
  }

  float momentum_;
  bool nesterov_;
  FloatArena velocity_;
};

class Adam : public ElementwiseOptimizer {
 public:
  Adam(const OptimizerOptions& options, std::vector<Run> runs, std::span<float> values,
       std::span<const float> gradients)
      : ElementwiseOptimizer(std::move(runs), values, gradients),
        options_(options),
        first_(values.size()),
        second_(values.size()) {}

  std::vector<NamedArena> state() override {
    return {{"adam_m", first_.span()}, {"adam_v", second_.span()}};
  }
  void place_state(const Allocate& allocate) override {
    first_.place(allocate(size()));
    second_.place(allocate(size()));
  }

 private:
  void move(std::size_t at, std::span<const float> gradients, const Pace& pace) override {
    const std::size_t count = gradients.size();
    adam_step(values_.subspan(at, count), gradients, first_.span().subspan(at, count),
              second_.span().subspan(at, count),
              {.rate = pace.rate,
               .beta1 = options_.beta1,
               .beta2 = options_.beta2,
               .epsilon = options_.epsilon,
               .decay = pace.decay,
               .update = pace.update});
  }

  OptimizerOptions options_;
  FloatArena first_, second_;
};

// Layer-wise adaptive rates: a weight moves by a fixed share (`trust`) of its own length.
class Lars : public RunOptimizer {
 public:
  Lars(const OptimizerOptions& options, std::vector<Run> runs, std::span<float> values,
       std::span<const float> gradients)
      : RunOptimizer(std::move(runs), values, gradients),
        momentum_(options.momentum),
        trust_(options.trust),
        velocity_(values.size()) {}

  void update(std::size_t begin, std::size_t end, float rate, std::int64_t) override {
    CHECK(begin <= end && end <= values_.size(), "range {} to {} of {}", begin, end,
          values_.size());
    for (auto run = run_at(begin); run != runs_.end() && run->begin < end; ++run) {
      CHECK(run->begin >= begin && run->end <= end, "range {} to {} cuts a parameter", begin, end);
      update_run(*run, rate);
    }
  }

  WeightUpdate* in_backward(float, std::int64_t) override { return nullptr; }

  std::vector<NamedArena> state() override { return {{"momentum", velocity_.span()}}; }
  void place_state(const Allocate& allocate) override { velocity_.place(allocate(size())); }
  bool elementwise() const override { return false; }

 private:
  void update_run(const Run& run, float rate) {
    const std::size_t size = run.end - run.begin;
    const auto values = values_.subspan(run.begin, size);
    const auto gradients = gradients_.subspan(run.begin, size);
    const auto velocity = velocity_.span().subspan(run.begin, size);
    const float local = run.adapts ? local_rate(values, gradients, run.decay) : 1.0f;
    const MomentumStep step{
        .rate = rate * run.rate * local, .momentum = momentum_, .decay = run.decay};
    parallel_for(size, std::size_t{1} << 13, [&](std::size_t from, std::size_t to) {
      lars_step(values.subspan(from, to - from), gradients.subspan(from, to - from),
                velocity.subspan(from, to - from), step);
    });
  }

  // 1 where the weight or its gradient is zero throughout, so that it can leave zero.
  float local_rate(std::span<const float> values, std::span<const float> gradients,
                   float decay) const {
    const Norms length = norms(values, gradients);
    const double divisor = length.gradients + double(decay) * length.values;
    if (length.values == 0 || length.gradients == 0) return 1.0f;
    return float(double(trust_) * length.values / divisor);
  }

  float momentum_;
  float trust_;
  FloatArena velocity_;
};

std::vector<Run> make_runs(const OptimizerOptions& options, std::span<const Parameter> parameters) {
  const bool one_each = options.kind == "lars";
  std::vector<Run> runs;
  for (const Parameter& parameter : parameters) {
    if (parameter.spec.frozen) continue;
    const Role role = parameter.spec.role;
    const bool weight = role == Role::weight;
    const bool bias = role == Role::bias || role == Role::norm_bias;
    const Run run{.begin = parameter.begin,
                  .end = parameter.end,
                  .decay = weight || options.decay_all ? options.weight_decay : 0.0f,
                  .rate = bias ? options.bias_rate : 1.0f,
                  .adapts = weight};
    CHECK(run.begin <= run.end && (runs.empty() || runs.back().end <= run.begin),
          "{} is not in arena order", parameter.spec.name);
    if (!one_each && !runs.empty() && runs.back().decay == run.decay &&
        runs.back().rate == run.rate && runs.back().end == run.begin)
      runs.back().end = run.end;
    else
      runs.push_back(run);
  }
  return runs;
}

void check_range(const char* field, float value, bool fits, const char* range) {
  if (!fits) throw ConfigError("{}: {} is not possible; give a number {}", field, value, range);
}

void check_options(const OptimizerOptions& options) {
  const auto& kinds = optimizer_kinds();
  if (std::find(kinds.begin(), kinds.end(), options.kind) == kinds.end())
    throw ConfigError("optimizer: there is no '{}'; did you mean '{}'? (sgd, adam or lars)",
                      options.kind, nearest(options.kind, kinds));
  const auto share = [](float x) { return x >= 0 && x < 1; };
  const auto positive = [](float x) { return x > 0 && std::isfinite(x); };
  constexpr auto kShare = "from 0 to below 1";
  check_range("momentum", options.momentum, share(options.momentum), kShare);
  check_range("beta1", options.beta1, share(options.beta1), kShare);
  check_range("beta2", options.beta2, share(options.beta2), kShare);
  check_range("epsilon", options.epsilon, positive(options.epsilon), "above 0");
  check_range("trust", options.trust, positive(options.trust), "above 0");
  check_range("weight-decay", options.weight_decay,
              options.weight_decay >= 0 && std::isfinite(options.weight_decay), "of 0 or more");
  check_range("bias-rate", options.bias_rate, positive(options.bias_rate), "above 0");
  if (options.nesterov && options.kind != "sgd")
    throw ConfigError("nesterov: only sgd has it, not {}; leave it out", options.kind);
  if (options.nesterov && options.momentum == 0)
    throw ConfigError("nesterov: needs a momentum above 0, such as 0.9");
}

}  // namespace

void Optimizer::update_others(std::vector<ArenaRange> moved, float rate, std::int64_t number) {
  std::sort(moved.begin(), moved.end(),
            [](const ArenaRange& a, const ArenaRange& b) { return a.begin < b.begin; });
  std::size_t at = 0;
  for (const ArenaRange& range : moved) {
    if (at < range.begin) update(at, range.begin, rate, number);
    at = range.end;
  }
  if (at < size()) update(at, size(), rate, number);
}

const std::vector<std::string>& optimizer_kinds() {
  static const std::vector<std::string> kinds = {"sgd", "adam", "lars"};
  return kinds;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          std::span<const Parameter> parameters,
                                          std::span<float> values,
                                          std::span<const float> gradients) {
  check_options(options);
  CHECK(values.size() == gradients.size(), "arenas of {} and {} floats", values.size(),
        gradients.size());
  std::vector<Run> runs = make_runs(options, parameters);
  CHECK(runs.empty() || runs.back().end <= values.size(), "parameters end at {}, the arena at {}",
        runs.back().end, values.size());
  if (options.kind == "adam")
    return std::make_unique<Adam>(options, std::move(runs), values, gradients);
  if (options.kind == "lars")
    return std::make_unique<Lars>(options, std::move(runs), values, gradients);
  return std::make_unique<Sgd>(options, std::move(runs), values, gradients);
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, Parameters& parameters) {
  return make_optimizer(options, parameters.list(), parameters.values(), parameters.gradients());
}

}  // namespace convoy
