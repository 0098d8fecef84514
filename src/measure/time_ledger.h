// Where the time of a run went: every second is in exactly one phase, and the phases sum to the
// wall time. Forward and backward are also counted by layer.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "measure/phase.h"
#include "measure/records.h"
#include "nn/network.h"
#include "world/runtime.h"

namespace convoy {

inline constexpr NodeId kNoNode = -1;

class TimeLedger {
 public:
  // The runtime outlives the ledger; its clock may be a virtual one.
  explicit TimeLedger(const Runtime& runtime, std::size_t nodes = 0)
      : runtime_(&runtime), start_s_(runtime.now_s()), last_s_(start_s_), layers_(nodes) {}

  // The time since the last call was spent on `phase`, in or for a layer.
  void charge(Phase phase, NodeId node = kNoNode) {
    const double now = runtime_->now_s();
    const double spent_s = now - last_s_ - carved_s_;
    add(epoch_, phase, spent_s);
    if (node != kNoNode && std::size_t(node) < layers_.size()) {
      if (phase == Phase::forward) layers_[std::size_t(node)].forward_s += spent_s;
      if (phase == Phase::backward) layers_[std::size_t(node)].backward_s += spent_s;
    }
    ++charges_;
    if (watched_) watched_->push_back({phase, node, last_s_, now});
    last_s_ = now;
    carved_s_ = 0;
  }
  // A part of the time since the last call, which charge() will then leave out.
  void carve(Phase phase, double seconds) {
    add(epoch_, phase, seconds);
    carved_s_ += seconds;
  }
  // What was charged to one phase turns out to belong to another.
  void move(int epoch, Phase from, Phase to, double seconds) {
    add(epoch, from, -seconds);
    add(epoch, to, seconds);
  }
  // What follows belongs to this epoch; what came before the first, to epoch 0.
  void start_epoch(int epoch) { epoch_ = epoch; }
  int epoch() const { return epoch_; }

  double seconds(Phase phase) const { return seconds_[std::size_t(phase)]; }
  double training_s() const {
    return seconds(Phase::load) + seconds(Phase::forward) + seconds(Phase::backward) +
           seconds(Phase::communication) + seconds(Phase::wait) + seconds(Phase::update);
  }
  // What this worker's own part of a step takes, whatever the others do.
  double compute_s() const {
    return seconds(Phase::load) + seconds(Phase::forward) + seconds(Phase::backward) +
           seconds(Phase::update);
  }
  double wall_s() const { return last_s_ - start_s_; }
  double start_s() const { return start_s_; }  // by the runtime's clock
  double last_s() const { return last_s_; }    // of the last call, by the same

  std::int64_t charges() const { return charges_; }

  // Every charge as it comes, while not null. Outlives the watching.
  struct Charge {
    Phase phase;
    NodeId node;
    double begin_s, end_s;
  };
  void watch(std::vector<Charge>* charges) { watched_ = charges; }

  // What has come since the last time: call it before start_epoch(), which layers do not know.
  void take(int rank, std::int64_t steps, Records& records);

 private:
  struct Sums {
    int epoch = 0;
    std::array<double, kPhases> seconds{};
  };
  struct Layer {
    double forward_s = 0, backward_s = 0;
  };
  void add(int epoch, Phase phase, double seconds) {
    seconds_[std::size_t(phase)] += seconds;
    if (fresh_.empty() || fresh_.back().epoch != epoch) open(epoch);
    fresh_.back().seconds[std::size_t(phase)] += seconds;
  }
  void open(int epoch);

  const Runtime* runtime_;
  double start_s_;
  double last_s_;
  double carved_s_ = 0;
  std::int64_t charges_ = 0;
  int epoch_ = 0;
  std::array<double, kPhases> seconds_{};
  std::vector<Sums> fresh_;    // since take(), by epoch; the last is that of the latest add()
  std::vector<Layer> layers_;  // since take(), by node
  std::vector<Charge>* watched_ = nullptr;
};

}  // namespace convoy
