#include "nn/empty_pass.h"

#include <algorithm>

#include "nn/plan.h"

namespace convoy {

EmptyPass::EmptyPass(const Network& network, Parameters& parameters, const Family& family,
                     StatisticsExchange* exchange)
    : parameters_(parameters) {
  const std::vector<bool> reached = network.reached_by_backward();
  for (const PlannedLayer& layer : plan_layers(network, family)) {
    if (std::holds_alternative<Input>(layer.layer)) continue;
    Step step;
    step.node = layer.node;
    step.reached = reached[layer.output];
    for (const Parameter& parameter : parameters.list())
      step.has_parameters = step.has_parameters || parameter.spec.node == layer.node;
    if (const auto* norm = std::get_if<BatchNorm>(&layer.layer); norm && exchange)
      step.norm = Norm{.statistics = {exchange, layer.shape.channels},
                       .momentum = norm->momentum,
                       .running = parameters.running_statistics(layer.node)};
    steps_.push_back(std::move(step));
  }
}

void EmptyPass::forward(const NodeHook& before) {
  for (Step& step : steps_) {
    if (before) before(step.node);
    if (!step.norm) continue;
    step.norm->statistics.clear();
    step.norm->statistics.share_moments(0);
    step.norm->statistics.update_running(step.norm->momentum, step.norm->running.mean,
                                         step.norm->running.variance);
  }
}

void EmptyPass::backward(const NodeHook& done) {
  std::span<float> gradients = parameters_.gradients();
  std::fill(gradients.begin(), gradients.end(), 0.0f);
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (step->norm && step->reached) {
      step->norm->statistics.clear();
      step->norm->statistics.share_gradients();
    }
    if (done && step->has_parameters) done(step->node);
  }
}

}  // namespace convoy
