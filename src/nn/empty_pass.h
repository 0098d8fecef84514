// A step without samples. A worker whose share of a batch is empty still does what others count on:
// it calls every hook, takes part in every exchange of statistics, where a graph would, and has
// gradients, which are zero.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "kernels/family.h"
#include "kernels/norm_statistics.h"
#include "nn/network.h"
#include "nn/parameters.h"

namespace convoy {

class EmptyPass {
 public:
  using NodeHook = std::function<void(NodeId)>;

  // Parameters and exchange (may be null) outlive this.
  EmptyPass(const Network& network, Parameters& parameters, const Family& family,
            StatisticsExchange* exchange);

  void forward(const NodeHook& before);
  void backward(const NodeHook& done);

 private:
  struct Norm {
    NormStatistics statistics;
    float momentum;
    RunningStatistics running;
  };
  struct Step {
    NodeId node = 0;
    bool has_parameters = false;
    bool reached = false;      // by backward
    std::optional<Norm> norm;  // whose statistics are shared
  };

  Parameters& parameters_;
  std::vector<Step> steps_;
};

}  // namespace convoy
