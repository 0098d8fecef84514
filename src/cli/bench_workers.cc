#include "cli/bench_workers.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "optim/optimizer.h"
#include "sync/allreduce_strategy.h"
#include "sync/shared_strategy.h"
#include "train/host_arenas.h"
#include "train/step_times.h"
#include "train/worker.h"
#include "train/workers.h"

namespace convoy {
namespace {

constexpr int kFirstSteps = 4;  // whose times the plan is made from
constexpr int kMostSteps = 1'000'000;
constexpr std::size_t kFirstBucketBytes = std::size_t{4} << 20;
constexpr float kRate = 1e-4f;

class Steps {
 public:
  Steps(World world, Model& model, const WorkerSteps& options)
      : options_(options),
        model_(model),
        workers_(world, {}),
        optimizer_(first_optimizer(world)),
        plan_(simple_plan(layer_ranges(model.parameters()), kFirstBucketBytes)),
        wire_(make_wire_format("f32", model.parameters().gradients().size())),
        strategy_(first_strategy(world)),
        time_(world.runtime),
        worker_({.model = model_, .strategy = *strategy_, .runtime = world.runtime, .time = time_},
                plan_.buckets) {}

  std::vector<double> time() {
    worker_.watch(true);
    for (int i = 0; i < kFirstSteps; ++i) step();
    plan();
    double each_s = step();
    each_s = std::min(each_s, step());
    const int count = agreed_count(each_s);
    std::vector<float> step_s;
    for (int i = 0; i < count; ++i) step_s.push_back(float(step()));
    worker_.settle();
    workers_.sum(step_s);
    for (float& seconds : step_s) seconds /= float(workers_.size());
    workers_.close();
    if (worker_.not_finite()) throw DataError("{} is not finite", worker_.not_finite()->place);
    return {step_s.begin(), step_s.end()};
  }

 private:
  std::unique_ptr<Optimizer> first_optimizer(World world) {
    share_gradients(workers_, world, model_.parameters());
    if (shares_everything(world)) share_values(workers_, world, model_.parameters());
    auto optimizer = make_optimizer({.kind = "sgd", .momentum = 0.9f, .weight_decay = 1e-4f},
                                    model_.parameters());
    if (shares_everything(world)) share_state(workers_, world, *optimizer);
    return optimizer;
  }
  std::unique_ptr<SyncStrategy> first_strategy(World world) {
    const std::span<float> gradients = model_.parameters().gradients();
    if (shares_everything(world))
      return std::make_unique<SharedStrategy>(workers_.comm(), *world.transport.host_memory(),
                                              *optimizer_, gradients);
    auto strategy =
        std::make_unique<AllReduceStrategy>(workers_.comm(), *wire_, *optimizer_, gradients, true);
    strategy->set_plan(plan_);
    allreduce_ = strategy.get();
    return strategy;
  }

  double step() {
    const double start_s = now_s();
    worker_.step(options_.part, {}, options_.global, {.rate = kRate, .update = ++updates_});
    return now_s() - start_s;
  }

  void plan() {
    worker_.watch(false);
    if (allreduce_) replan(workers_.comm(), model_.parameters(), worker_, *allreduce_);
  }

  // How many steps to measure: worker 0 decides.
  int agreed_count(double step_s) {
    std::int64_t count = options_.steps;
    if (count == 0)
      count = std::clamp<std::int64_t>(std::int64_t(options_.seconds / std::max(step_s, 1e-6)), 3,
                                       kMostSteps);
    workers_.spread(std::as_writable_bytes(std::span(&count, 1)));
    return int(count);
  }

  const WorkerSteps& options_;
  Model& model_;
  Workers workers_;
  std::unique_ptr<Optimizer> optimizer_;
  BucketPlan plan_;
  std::unique_ptr<WireFormat> wire_;
  AllReduceStrategy* allreduce_ = nullptr;  // where the strategy is that
  std::unique_ptr<SyncStrategy> strategy_;
  TimeLedger time_;
  Worker worker_;
  std::int64_t updates_ = 0;
};

}  // namespace

std::vector<double> time_worker_steps(World world, Model& model, const WorkerSteps& options) {
  return Steps(world, model, options).time();
}

}  // namespace convoy
