// Convolution and dense layers as tile products, driven by lists of tiles (windows.h). All values
// in the layout of layout.h. Weights come as packs of 32 x 32 blocks:
//   forward  [out plane][tap][in plane]: in-channel pairs x out channels (two tiles of 16 out
//   channels), backward [in plane][tap][out plane]: out-channel pairs x in channels,
// made from stored weights [tap][in plane][out plane][32 in][32 out] of f32, which is how gradients
// come out as well.
#pragma once

#include "kernels/amx/columns.h"
#include "kernels/amx/layout.h"
#include "kernels/amx/windows.h"

namespace convoy::amx {

struct WeightShape {
  int taps = 1;
  int in_planes = 0;
  int out_planes = 0;
  std::size_t size() const { return std::size_t(taps) * in_planes * out_planes * kBlock; }
};

void pack_forward(const WeightShape& shape, const float* stored, Bf16* pack);
void pack_backward(const WeightShape& shape, const float* stored, Bf16* pack);

// What is done with the sums of a target block before they are stored.
struct Finish {
  enum Kind { plain, add, bias, norm_sums, logits } kind = plain;  // add: to what is there
  const float* bias_lanes = nullptr;  // [target lanes], for bias and logits
  bool relu = false;                  // with bias
  double* partial = nullptr;          // norm_sums: [slots][2][target lanes]
  float* logits_out = nullptr;        // logits: [batch][channels] instead of the target
};

struct TileProduct {
  Layout source, target;
  int taps = 1;
  const std::int32_t* begin = nullptr;  // TilePlan
  const TileStep* steps = nullptr;
  const TileJoin* joins = nullptr;
  int slots = 1;  // threads at most
  const Columns* columns =
      nullptr;  // makes the source; then taps is 1, and buffers of column_buffer_size() are needed
  Bf16* column_buffers = nullptr;
};

std::size_t column_buffer_size(const TileProduct& product);  // numbers, for all slots

// target = sum over steps of source tiles times pack blocks. `target` has its padding rows zero.
void run_product(const TileProduct& product, const Bf16* source, const Bf16* pack, Bf16* target,
                 const Finish& finish);

// The same for dense layers whose images are one lot, from stored weights: `forward` as bound for
// the product, `backward` likewise.
void run_dense_forward(const TileProduct& forward, const Bf16* source, const float* stored,
                       Bf16* target, const Finish& finish);
void run_dense_backward(const TileProduct& backward, const Bf16* gradient, const float* stored,
                        Bf16* target);

// Adds up the threads' partial sums into the value's trailer.
void finish_norm_sums(const Layout& layout, int slots, const double* partial, Bf16* value);

// Gradients of weights. A window of kernel_height x kernel_width slides over the source (a dense
// layer's covers all of it).
struct Slide {
  int height = 1, width = 1;
  int out_height = 1, out_width = 1;
  int kernel_height = 1, kernel_width = 1;
  int stride = 1, padding = 0;
};
// Work goes slab by slab: some lots, rows and steps (columns) of the target. The threads
// turn a slab's blocks, then share its products by (in plane, out plane, tap), so that sums need no
// second buffer and do not depend on the number of threads.
//   turned source   [in plane][lot][row][block][32 channels][32 rows]: with lots of 32, a block is
//   a column, padding columns
//                   included; rows that the next slab needs again stay (row y is in slot (y +
//                   padding) mod source_rows()); with smaller lots there is, for each column of the
//                   kernel, a copy of `steps` blocks shifted by it,
//   turned gradient [out plane][lot][row][step][16 row pairs x 32 channels], each target row filled
//   up to whole steps of 32.
struct WeightProduct {
  Layout source, target;
  WeightShape shape;
  Slide slide;
  int steps = 1;           // blocks per target row
  int source_blocks = 1;   // blocks per turned source row
  int kernel_advance = 1;  // blocks from one column of the kernel to the next
  int step_advance = 1;    // source blocks from one step to the next
  int slab_lots = 1, slab_rows = 1, slab_steps = 1;
  int slots = 1;
  const Columns* columns = nullptr;  // makes the source

  int source_rows() const {  // of a slab, per lot
    return (slab_rows - 1) * slide.stride + slide.kernel_height;
  }
  std::size_t source_row_size() const { return std::size_t(source_blocks) * kBlock; }
  std::size_t source_plane_size() const { return source_row_size() * source_rows() * slab_lots; }
  std::size_t target_plane_size() const {
    return std::size_t(slab_lots) * slab_rows * slab_steps * kBlock;
  }
  std::size_t turned_size() const {  // numbers of scratch
    return source_plane_size() * shape.in_planes + target_plane_size() * shape.out_planes;
  }
};
WeightProduct plan_weight_product(const Layout& source, const Layout& target,
                                  const WeightShape& shape, Slide slide, int slots);
void run_weight_product(const WeightProduct& product, const Bf16* source,
                        const Bf16* target_gradient, Bf16* turned, float* gradient);

// gradient := gradient where output > 0, else 0 (output may be null: kept), and its sums over rows:
// partial [slots][lanes].
void mask_and_sum(const Layout& layout, int slots, const Bf16* output, Bf16* gradient,
                  double* partial);
// result[channel] = sum over slots, for the first `channels` lanes.
void add_partials(int slots, int lanes, int channels, const double* partial, float* result);

}  // namespace convoy::amx
