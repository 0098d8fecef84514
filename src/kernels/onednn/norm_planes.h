// What batch norm does beside oneDNN where its statistics are shared with other workers. Values in
// the layout of engine.h.
#pragma once

#include <cstddef>
#include <span>

#include "base/shape.h"
#include "kernels/norm_statistics.h"

namespace convoy::onednn {

// Sets each channel's sums of x and of x * x over all samples and positions. Each sample is summed
// by itself and then in order, so that no sum depends on the number of threads. `partial`: scratch
// of channel_sums_bytes().
void channel_sums(const Shape& shape, int batch, const float* x, double* partial,
                  NormStatistics& statistics);
std::size_t channel_sums_bytes(const Shape& shape, int batch);

// gradient += slope * x + offset, by channel; slope and offset cover the channels that pad.
void add_linear(const Shape& shape, int batch, std::span<const float> slope,
                std::span<const float> offset, const float* x, float* gradient);

}  // namespace convoy::onednn
