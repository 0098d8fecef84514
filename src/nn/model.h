// A network with its parameters, ready to run: forward, backward, evaluate, for any batch size. It
// prepares a graph per batch size it meets (the training batch at once, the last, smaller batch of
// an epoch when it comes) and keeps them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/batch.h"
#include "kernels/family.h"
#include "kernels/precision.h"
#include "nn/network.h"
#include "nn/parameters.h"

namespace convoy {

class EmptyPass;
class Graph;

struct ModelOptions {
  int batch = 128;
  Precision precision = Precision::f32;
  int threads = 0;         // 0: all cores of this process
  std::uint64_t seed = 1;  // of initial weights and dropout
  float label_smoothing = 0;
  // Where given, batch norms in training take their statistics over the samples of all workers,
  // whose models have the same network and family of kernels, and call it once per batch norm in
  // forward and once in backward, whatever the batch. It outlives the model.
  StatisticsExchange* exchange = nullptr;
  // Kernels are chosen by sizes and never by timing: the same bits in every run and process, given
  // the same batch and threads (the AMX family's do not even depend on threads).
  bool fixed_algorithms = false;
};

// What a batch showed. Sums, so that batches and workers add up exactly.
struct Outcome {
  double loss_sum = 0;
  int correct = 0;
  int samples = 0;
};

// Seconds of one layer, for `convoy bench step`.
struct LayerTime {
  NodeId node = 0;
  double forward_s = 0;
  double backward_s = 0;
  BackwardTimes split;  // of backward_s, as far as the layer tells
};

class Model {
 public:
  using NodeHook = std::function<void(NodeId)>;

  Model(Network network, ModelOptions options);  // with fresh weights
  ~Model();

  // Training: gradients are those of the mean loss (label smoothing included) over `mean_over`
  // samples: 0 means the batch; a worker with a part of a larger batch gives that one's size, and
  // the workers' gradients then add up. `before` is called with each node just before it is
  // computed, first layer first.
  // A batch may be empty: hooks and exchanges go on as ever, and gradients are zero.
  Outcome forward(const Batch& batch, const NodeHook& before = {}, int mean_over = 0);
  // Of the last forward. `done` is called with each node that has parameters once its gradients are
  // final, last layer first.
  // Where `update` is given, it moves some weights at once, instead of their gradients being
  // written: those that are returned, in no order.
  std::vector<ArenaRange> backward(const NodeHook& done = {}, WeightUpdate* update = nullptr);
  // Running statistics, no dropout, no label smoothing.
  Outcome evaluate(const Batch& batch);

  const Network& network() const { return network_; }
  Parameters& parameters() { return *parameters_; }
  const Parameters& parameters() const { return *parameters_; }
  const ModelOptions& options() const { return options_; }
  const Family& family() const { return *family_; }

  // The time of each layer, summed since profile(true).
  void profile(bool on);
  std::vector<LayerTime> layer_times() const;
  // Logits of the last forward or evaluate, [batch][classes].
  std::span<const float> logits() const;

 private:
  class Arena;
  Graph& graph(int batch, bool training);

  Network network_;
  ModelOptions options_;
  std::unique_ptr<Family> family_;
  std::unique_ptr<Parameters> parameters_;
  std::unique_ptr<Arena> arena_;
  std::map<std::pair<int, bool>, std::unique_ptr<Graph>> graphs_;
  std::unique_ptr<EmptyPass> empty_;
  Graph* last_ = nullptr;  // null after a batch without samples
  bool profiling_ = false;
};

}  // namespace convoy
