#include "train/pace.h"

#include "base/check.h"

namespace convoy {

// Only convolutions and dense layers have operations, and all of them have parameters: so nothing
// is left for layers without.
Pace::Pace(const Network& network, double images_per_s, double message_s_per_byte)
    : message_s_per_byte_(message_s_per_byte) {
  CHECK(images_per_s > 0, "{} images per second", images_per_s);
  const double per_flop = 1 / (images_per_s * network.forward_flops());
  for (const Node& node : network.nodes()) {
    const double share_s = node.id == 0 ? 0.0 : network.forward_flops(node) * per_flop;
    forward_s_.push_back(share_s / 3);
    backward_s_.push_back(share_s * 2 / 3);
  }
}

double Pace::forward_s(NodeId node, int samples) const {
  return forward_s_[std::size_t(node)] * samples;
}

double Pace::backward_s(NodeId node, int samples) const {
  return backward_s_[std::size_t(node)] * samples;
}

}  // namespace convoy
