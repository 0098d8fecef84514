// Convolution with stride 1 by Winograd's algorithm, f32 on AVX2: F(4x4, 3x3) and F(2x2, 5x5),
// which take a quarter and a little over a third of the products that convolution takes by its
// definition. (oneDNN has the first, for AVX-512 only.) Rounding errors are some ten times larger,
// up to some 3e-5 of the largest value.
//
// Values lie as [batch][channels / 8][height][width][8], weights as
// [out / 8][in / 8][kernel][kernel][8 of in][8 of out]; channels that pad are counted, and zero in
// values and weights; all memory begins at a line of the cache. The output may be smaller than the
// input allows. No result depends on the number of threads.
#pragma once

#include <cstddef>
#include <span>

#include "base/shape.h"

namespace convoy::winograd {

struct Size {
  int batch;
  Shape source, target;  // channels in multiples of 8
  int kernel;            // 3 or 5
  int padding;           // before the first row and column; less than the kernel
  int threads;           // at most; scratch has room for each
};

std::size_t scratch_bytes(const Size& size);  // enough for any pass

// Biases: none, or one for each channel that does not pad.
void forward(const Size& size, const float* source, const float* weights,
             std::span<const float> bias, bool relu, float* target, std::byte* scratch);
void backward_data(const Size& size, const float* weights, const float* target_gradient,
                   float* source_gradient, std::byte* scratch);
void backward_weights(const Size& size, const float* source, const float* target_gradient,
                      float* weight_gradient, std::span<float> bias_gradient, std::byte* scratch);

}  // namespace convoy::winograd
