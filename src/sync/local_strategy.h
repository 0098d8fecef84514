// One worker alone: its gradients are all there are.
#pragma once

#include <utility>
#include <vector>

#include "optim/optimizer.h"
#include "sync/strategy.h"

namespace convoy {

class LocalStrategy final : public SyncStrategy {
 public:
  explicit LocalStrategy(Optimizer& optimizer) : optimizer_(optimizer) {}

  WeightUpdate* in_backward(const UpdateRate& rate) override {
    return optimizer_.in_backward(rate.rate, rate.update);
  }
  void bucket_ready(const Bucket&) override {}
  void end_step(const UpdateRate& rate, std::vector<ArenaRange> moved) override {
    optimizer_.update_others(std::move(moved), rate.rate, rate.update);
  }
  void await(const Bucket&) override {}
  void apply(const Bucket&) override {}

 private:
  Optimizer& optimizer_;
};

}  // namespace convoy
