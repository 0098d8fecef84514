// What one worker does in a step: forward, backward and update on its part of the batch, while the
// strategy talks to the other workers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/time_ledger.h"
#include "nn/model.h"
#include "sync/bucket_plan.h"
#include "sync/invariant_strategy.h"
#include "sync/strategy.h"
#include "train/pace.h"
#include "train/recording.h"
#include "world/runtime.h"

namespace convoy {

// A number that is not finite, found before anybody else saw it.
struct NotFinite {
  std::string place;  // "the loss", "the gradients of layer2.0.conv1"
  std::uint32_t epoch = 0;
  std::vector<std::uint32_t> samples;  // the batch that showed it
  int global = 0;                      // samples that its gradients are the mean over
};

class Worker {
 public:
  // All outlive the worker. Pointers may be null.
  struct Parts {
    Model& model;
    SyncStrategy& strategy;
    Runtime& runtime;
    TimeLedger& time;
    InvariantStrategy* invariant = nullptr;
    const Pace* pace = nullptr;
    Recording* recording = nullptr;
    bool checks_gradients = true;
  };
  Worker(Parts parts, std::span<const Bucket> buckets);

  // One step on this worker's part of a batch of `global` samples. A part may be empty; `shards`
  // are the sizes of its shards in invariant mode. From the moment that something is not finite,
  // the worker sends zeros: the others must not be left waiting.
  Outcome step(const Batch& part, std::span<const int> shards, int global, const UpdateRate& rate);
  // Waits until all weights are those of the coming step.
  void settle();
  // Other buckets, after settle().
  void set_buckets(std::span<const Bucket> buckets);

  const std::optional<NotFinite>& not_finite() const { return not_finite_; }

  // While on, notes when layers are ready and needed; the latest step counts.
  void watch(bool on) { watching_ = on; }
  const StepTimes& watched() const { return watched_; }

 private:
  Outcome compute(const Batch& batch, int global, const UpdateRate& rate,
                  std::vector<ArenaRange>* moved);
  void before_forward(NodeId node, int samples);
  void after_backward(NodeId node, const Batch& batch, int global);
  void check(const Bucket& bucket, const Batch& batch, int global);
  void make_current(const Bucket& bucket, NodeId node);

  Parts parts_;
  std::vector<LayerRange> layers_;
  std::vector<Bucket> buckets_;
  std::vector<int> bucket_of_;    // by node; -1: no parameters
  std::vector<std::size_t> end_;  // by node: where its range in the arena ends
  std::vector<int> layer_of_;     // by node: its place in layers_
  std::size_t ready_ = 0;         // buckets that were ready in this step
  std::optional<NotFinite> not_finite_;
  bool watching_ = false;
  double phase_start_s_ = 0;
  NodeId computed_ = 0;  // the node that forward is at
  StepTimes watched_;
};

}  // namespace convoy
