// A network bound to a batch size and a family of kernels: every op made, every buffer placed,
// ready to run any number of times.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/batch.h"
#include "kernels/family.h"
#include "kernels/loss.h"
#include "nn/memory_plan.h"
#include "nn/network.h"
#include "nn/parameters.h"
#include "nn/plan.h"

namespace convoy {

struct GraphOptions {
  int batch = 0;
  int tuning_batch = 0;  // see OpSpec
  bool training = true;
  std::uint64_t seed = 1;
  float label_smoothing = 0;
  StatisticsExchange* exchange = nullptr;  // of batch norms in training, see OpSpec
  bool leaving = true;  // layers may leave passes to their neighbours (see Left in family.h); the
                        // bits are the same without
};

class Graph {
 public:
  using NodeHook = std::function<void(NodeId)>;

  Graph(const Network& network, Parameters& parameters, const Family& family,
        const GraphOptions& options);
  ~Graph();

  // What forward and backward need besides parameters. Any memory of that size will do, aligned to
  // 64 bytes; its contents must stay from forward to the backward that follows.
  std::size_t arena_bytes() const { return arena_bytes_; }

  LossSums forward(const Batch& batch, std::byte* arena, const NodeHook& before, int mean_over);
  // Returns the weights that `update` (may be null) moved, in no order: their gradients are not
  // written.
  std::vector<ArenaRange> backward(std::byte* arena, const NodeHook& done, WeightUpdate* update);
  std::span<const float> logits() const { return logits_; }

  // Seconds per layer, forward and backward, added up while `timing` is on.
  struct Timing {
    NodeId node = 0;
    double forward_s = 0, backward_s = 0;
    BackwardTimes split;  // of backward_s, as far as the layer tells
  };
  void time_layers(bool on) { timing_ = on; }
  std::span<const Timing> timings() const { return timings_; }

 private:
  // One op with its place in the arena.
  struct Step {
    const PlannedLayer* layer = nullptr;
    std::unique_ptr<Op> op;
    bool has_parameters = false;
    ArenaRange weight;
    bool frozen = false;
    std::vector<int> inputs;  // buffers
    int output = -1;
    int saved = -1;

    // Backward: copy the output gradient if others still need it as it is, run, then add what came
    // a second time.
    int copy_from = -1;
    int output_gradient = -1;
    std::vector<int> input_gradients;  // -1: not wanted, or passed through
    bool add_to_gradient = false;      // the first of them already holds what other layers gave
    int takes_for = -1;                // the step for which sums over the first of them are taken
    int sums = -1;                     // those taken over the output gradient
    bool leaves_output = false;        // to the next step
    bool leaves_gradient = false;      // of the first input, to the step before
    struct Addition {
      int copy_from = -1;  // first copy this buffer into the accumulator
      int accumulator = -1, addend = -1;
      Shape shape;
    };
    std::vector<Addition> additions;
  };

  // Planning. Time is the position in the run: forward of step i is at i, the loss at S = steps,
  // backward of step i at 2S - i.
  int backward_time(std::size_t step) const { return 2 * int(steps_.size()) - int(step); }
  void bind_ops(const Network& network, Parameters& parameters);
  void plan_values();
  void plan_gradients();
  void contribute(Step& step, NodeId value, int buffer, int time);
  void take_sums(std::size_t step, int writer);
  void plan_leaving();
  bool can_leave_gradient(std::size_t step) const;
  int new_buffer(std::size_t bytes, int first, int last);
  bool others_need(int buffer, NodeId value, int time) const;
  std::size_t bytes_of(NodeId value) const;

  void ingest(const Batch& batch, std::byte* arena) const;
  std::byte* at(std::byte* arena, int buffer) const {
    return buffer < 0 ? nullptr : arena + buffers_[buffer].offset;
  }

  const Family& family_;
  GraphOptions options_;
  Shape image_;  // of the data set; the input value may be a part of it
  std::vector<PlannedLayer> plan_;
  std::vector<bool> reached_;  // by value: whether it has a gradient
  float output_scale_;
  std::vector<Step> steps_;  // all planned layers but the input
  std::vector<Lifetime> buffers_;
  std::vector<Shape> value_shape_;  // these four by value
  std::vector<int> value_buffer_;
  std::vector<int> gradient_buffer_;  // -1: none yet
  std::vector<int> gradient_time_;    // when its maker's backward reads it
  NodeId output_ = 0;
  int scratch_ = -1;
  int left_ = -1;  // what a step leaves to the next one
  std::size_t arena_bytes_ = 0;
  std::vector<float> logits_;
  bool timing_ = false;
  std::vector<Timing> timings_;
};

}  // namespace convoy
