// Gradients of the weights of a network's first convolution, which reads plain images of few
// channels: oneDNN has only slow kernels for some of them without AVX-512 (one channel: a twentieth
// of the CPU's speed).
//
// Images lie as [batch][channels][height][width], the target's gradients as
// [batch][channels / 8][height][width][8], weights as [out][in][kernel][kernel]. No result depends
// on the number of threads.
#pragma once

#include <cstddef>
#include <span>

#include "base/shape.h"

namespace convoy::onednn {

struct ImageConvolution {
  int batch;
  Shape source, target;
  int kernel, stride, padding;
};

bool has_image_weights(int kernel);                          // which kernels there are
std::size_t image_weights_bytes(const ImageConvolution& c);  // of scratch

// bias_gradient: none, or one for each channel.
void image_weights(const ImageConvolution& c, const float* source, const float* target_gradient,
                   float* weight_gradient, std::span<float> bias_gradient, std::byte* scratch);

}  // namespace convoy::onednn
