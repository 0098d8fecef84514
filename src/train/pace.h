// How long a worker of a simulated cluster takes to compute, layer by layer: the time that passes
// on the virtual clock while the numbers are computed for real.
#pragma once

#include <vector>

#include "nn/network.h"

namespace convoy {

class Pace {
 public:
  // A worker that trains so many images in a second. A third of the time is forward's; layers share
  // it by their operations.
  Pace(const Network& network, double images_per_s);

  double forward_s(NodeId node, int samples) const;
  double backward_s(NodeId node, int samples) const;

 private:
  std::vector<double> forward_s_;  // of one sample, by node
  std::vector<double> backward_s_;
};

}  // namespace convoy
