// Max pooling of one plane: [height][width][B lanes] f32, B channels of one sample. Raw kernels;
// pooling.cc drives them.
#pragma once

#include <cstdint>

namespace convoy::onednn {

constexpr std::uint8_t kCut =
    255;  // recorded where a window's maximum was not positive and a folded ReLU cut it

struct PoolPlane {
  int in_height, in_width, out_height, out_width;
  int kernel, stride, padding;
  bool relu;
  bool tiles;  // the windows tile the input: each input position is in exactly one
};

// `where`: which tap of the window won, a byte per output number; may be null in forward. `lanes`
// of the output exist.
template <int B>
void max_pool_forward(const PoolPlane& p, const float* in, float* out, std::uint8_t* where,
                      int lanes);
// Gives each window's gradient to the tap that won.
template <int B>
void max_pool_backward(const PoolPlane& p, float* in_gradient, const float* gradient,
                       const std::uint8_t* where, int lanes);

}  // namespace convoy::onednn
