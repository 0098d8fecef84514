// Convolutions of 3 x 3 with stride 1 by Winograd's F(4x4, 3x3), with products and sums in f32: a
// quarter of the products, which pays where the CPU multiplies bf16 not much faster than f32.
// Values, stored weights and gradients as in product.h.
//
// A tile of 6 x 6 inputs makes 4 x 4 outputs. What is a *row* here is one tile of one image: rows
// are counted lot by lot, tile by tile, image by image. At each of 36 points rows are multiplied by
// weights; a *chunk* of rows is taken there, multiplied and brought back at a time, so that it
// stays in the cache. Chunks do not depend on the number of threads, and so no sum does.
//   rows    [36][rows of the chunk][channels]
//   weights [36][outer plane][inner channel][32 outer channels], where products run over the inner
//           ones; gradients of weights likewise
// of f32, with some room between rows and points, lest they compete for the same lines of a cache.
#pragma once

#include "kernels/amx/product.h"

namespace convoy::amx {

struct WinogradProduct {
  Layout source, target;
  int height = 1, width = 1;  // of the source
  int out_height = 1, out_width = 1;
  int before = 0;  // rows and columns of zeros before the source's first
  int slots = 1;   // threads at most

  int tiles_down() const { return (out_height + 3) / 4; }
  int tiles_across() const { return (out_width + 3) / 4; }
  int tiles() const { return tiles_down() * tiles_across(); }
  int rows() const { return source.lots * tiles() * source.lot; }
  // Few rows keep a chunk in the second-level cache, many share the reading of their weights.
  static constexpr int kChunkRows = 32;
  int chunks() const { return (rows() + kChunkRows - 1) / kChunkRows; }
};
// Convolution and, for backward to the data, the one that takes gradients of its target to its
// source.
WinogradProduct winograd_backward(const WinogradProduct& forward);

// Whether it takes less time than tiles do, by counting.
bool winograd_pays(const WinogradProduct& forward);

std::size_t winograd_weights_size(const WeightShape& shape);  // floats
// Weights at their points, rounded to bf16 before as packs are. `backward`: for the product that
// takes gradients of the target to the source, where out channels are the inner ones.
void make_winograd_weights(const WeightShape& shape, const float* stored, bool backward, float* to);

std::size_t winograd_scratch_size(const WinogradProduct& product);  // floats
// Units of `making` are chunks.
void run_winograd(const WinogradProduct& product, const Bf16* source, const float* weights,
                  Bf16* target, const Finish& finish, float* scratch,
                  const SourceMaking& making = {});
SourceReads source_reads(const WinogradProduct& product);

// Gradients of weights, of the forward product.
std::size_t winograd_gradient_scratch_size(const WinogradProduct& forward);  // floats
void run_winograd_gradient(const WinogradProduct& forward, const Bf16* source,
                           const Bf16* target_gradient, float* scratch,
                           const WeightGradient& gradient);

}  // namespace convoy::amx
