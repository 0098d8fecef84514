#include "train/step_times.h"

#include <algorithm>
#include <vector>

namespace convoy {
namespace {

constexpr std::size_t kSmallBytes = 16 << 10;
constexpr std::size_t kLargeBytes = std::size_t{4} << 20;
constexpr int kRounds = 5;

// The median of some all-reduces that all ranks start together: not the best, since a worker with a
// part of a core often has to wait for it.
double time_all_reduce(Communicator& communicator, std::span<float> values) {
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    communicator.barrier();
    const double start_s = communicator.runtime().now_s();
    communicator.all_reduce(values);
    seconds.push_back(communicator.runtime().now_s() - start_s);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRounds / 2, seconds.end());
  return seconds[kRounds / 2];
}

}  // namespace

StepTimes agreed_times(CommTask& comm, StepTimes own, std::size_t layers,
                       std::size_t gradient_bytes) {
  own.layers.resize(layers);
  comm.run([&](Communicator& communicator) {
    std::vector<float> values(std::clamp(gradient_bytes, 2 * kSmallBytes, kLargeBytes) /
                              sizeof(float));
    const double small_s =
        time_all_reduce(communicator, std::span(values).first(kSmallBytes / sizeof(float)));
    const double large_s = time_all_reduce(communicator, values);
    const double bytes = double(values.size() * sizeof(float) - kSmallBytes);
    own.per_byte_s = std::max(0.0, large_s - small_s) / bytes;
    own.alpha_s = std::max(0.0, small_s - own.per_byte_s * double(kSmallBytes));

    std::vector<float> all = {float(own.forward_s), float(own.backward_s), float(own.alpha_s),
                              float(own.per_byte_s)};
    for (const LayerMoment& layer : own.layers) {
      all.push_back(float(layer.ready_s));
      all.push_back(float(layer.needed_s));
    }
    communicator.all_reduce(all, Reduction::max);
    own.forward_s = all[0];
    own.backward_s = all[1];
    own.alpha_s = all[2];
    own.per_byte_s = all[3];
    for (std::size_t i = 0; i < layers; ++i) own.layers[i] = {all[4 + 2 * i], all[5 + 2 * i]};
  });
  return own;
}

StepTimes replan(CommTask& comm, const Parameters& parameters, Worker& worker,
                 AllReduceStrategy& strategy) {
  worker.settle();
  const std::vector<LayerRange> layers = layer_ranges(parameters);
  StepTimes times =
      agreed_times(comm, worker.watched(), layers.size(), parameters.gradients().size_bytes());
  strategy.set_plan(best_plan(layers, times));
  worker.set_buckets(strategy.plan().buckets);
  return times;
}

}  // namespace convoy
