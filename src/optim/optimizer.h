// Optimizers work on ranges of the parameter arena, so that a bucket can be updated as soon as its
// gradients are there. The formulas are PyTorch's (SGD, Adam) and those of You et al. 2017 (LARS);
// see kernels/optimizer.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nn/parameters.h"

namespace convoy {

struct OptimizerOptions {
  std::string kind = "sgd";  // sgd, adam, lars
  float momentum = 0;        // sgd, lars
  bool nesterov = false;     // sgd
  float weight_decay = 0;    // added to the gradient: gradient + weight_decay * value
  bool decay_all = false;    // also batch norm and biases
  float bias_rate = 1;       // factor of the rate for biases, batch norm's included
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;  // adam
  float trust = 0.001f;                                 // lars
};

// An arena of the parameters' layout, by name.
using NamedArena = std::pair<std::string, std::span<float>>;

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Updates values[begin, end) from gradients[begin, end); both are bounds of parameters, unless it
  // is elementwise(). `update` counts from 1. Runs on all threads of the team; the result does not
  // depend on how many there are, nor on how an arena is cut into ranges.
  virtual void update(std::size_t begin, std::size_t end, float rate, std::int64_t update) = 0;
  // For a backward pass: moves weights as their gradients come, to the same bits as update() would.
  // Null where the rule needs a whole gradient first. Valid until the next call.
  virtual WeightUpdate* in_backward(float rate, std::int64_t update) = 0;
  // Updates everything but the ranges that backward has moved.
  void update_others(std::vector<ArenaRange> moved, float rate, std::int64_t update);
  // Arenas of state by name ("momentum"; "adam_m", "adam_v"), each of the parameters' layout, for
  // checkpoints.
  virtual std::vector<NamedArena> state() = 0;
  // Before the first update: state lies in what allocate(count) gives, zeros that outlive this.
  using Allocate = std::function<std::span<float>(std::size_t)>;
  virtual void place_state(const Allocate& allocate) = 0;
  // A number's update depends on its own gradient only: ranges may then be cut anywhere.
  virtual bool elementwise() const = 0;
  virtual std::size_t size() const = 0;  // floats of the arena
};

// All kinds, for help texts.
const std::vector<std::string>& optimizer_kinds();

// Throws ConfigError for an unknown kind (naming the nearest) and for numbers out of range.
// `values` and `gradients` outlive the optimizer; `parameters` are in arena order and are copied.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          std::span<const Parameter> parameters,
                                          std::span<float> values,
                                          std::span<const float> gradients);
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, Parameters& parameters);

}  // namespace convoy
