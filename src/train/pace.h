// How long a worker of a simulated cluster takes to compute, layer by layer: the time that passes
// on the virtual clock while the numbers are computed for real.
#pragma once

#include <cstddef>
#include <vector>

#include "nn/network.h"

namespace convoy {

class Pace {
 public:
  // A worker that trains so many images in a second. A third of the time is forward's; layers share
  // it by their operations. Its core also does what messages need: so long for each byte of
  // gradients that is summed.
  Pace(const Network& network, double images_per_s, double message_s_per_byte);

  double forward_s(NodeId node, int samples) const;
  double backward_s(NodeId node, int samples) const;
  double message_s(std::size_t bytes) const { return message_s_per_byte_ * double(bytes); }

 private:
  std::vector<double> forward_s_;  // of one sample, by node
  std::vector<double> backward_s_;
  double message_s_per_byte_;
};

}  // namespace convoy
