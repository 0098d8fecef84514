// Kernels of our own as passes of a convolution among oneDNN's. Values lie as oneDNN has them on
// AVX2, nChw8c; weights for Winograd as OIhw8i8o.
#pragma once

#include <memory>

#include "kernels/onednn/engine.h"
#include "kernels/onednn/image_weights.h"
#include "kernels/winograd/winograd.h"

namespace convoy::onednn {

// `biases`: how many there are, or none.
std::unique_ptr<Pass> winograd_forward(const winograd::Size& size, int biases, bool relu);
std::unique_ptr<Pass> winograd_backward_data(const winograd::Size& size);
std::unique_ptr<Pass> winograd_backward_weights(const winograd::Size& size, int biases);

// Weights are made in the layout `plain`, and converted to `stored`.
std::unique_ptr<Pass> image_backward_weights(const ImageConvolution& size, int biases,
                                             const Desc& plain, const Desc& stored);

}  // namespace convoy::onednn
