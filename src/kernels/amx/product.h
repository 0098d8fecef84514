// Convolution and dense layers as tile products, driven by lists of tiles (windows.h). All values
// in the layout of layout.h. Weights come as packs of 32 x 32 blocks:
//   forward  [out plane][tap][in plane]: in-channel pairs x out channels (two tiles of 16 out
//   channels), backward [in plane][tap][out plane]: out-channel pairs x in channels,
// made from stored weights [tap][in plane][out plane][32 in][32 out] of f32, which is how gradients
// come out as well.
#pragma once

#include "kernels/amx/columns.h"
#include "kernels/amx/layout.h"
#include "kernels/amx/making.h"
#include "kernels/amx/windows.h"
#include "kernels/family.h"

namespace convoy::amx {

struct WeightShape {
  int taps = 1;
  int in_planes = 0;
  int out_planes = 0;
  std::size_t size() const { return std::size_t(taps) * in_planes * out_planes * kBlock; }
};

void pack_forward(const WeightShape& shape, const float* stored, Bf16* pack);
void pack_backward(const WeightShape& shape, const float* stored, Bf16* pack);

// What is done with the sums of a target block before they are stored. add: they are added to what
// is there.
struct Finish {
  enum Kind { plain, add, bias, norm_sums, logits, gradient } kind = plain;
  const float* bias_lanes = nullptr;  // [target lanes], for bias and logits
  bool relu = false;                  // with bias
  // norm_sums: room for [target.partials()][2][target lanes]; the sums of all, of the numbers and
  // of their squares, come in front.
  double* partial = nullptr;
  float* logits_out = nullptr;  // logits: [batch][channels] instead of the target
  // gradient: zero where `value` is not positive (null: kept), or scale * factor + shift (null:
  // kept); sums in `partial` as for norm_sums, of the gradient and of its product with `factor`
  // (null: zero). All in the target's layout.
  bool added = false;  // to what is there, as by `add`
  const Bf16* value = nullptr;
  const Bf16* factor = nullptr;
  const float* scale = nullptr;  // [target lanes]
  const float* shift = nullptr;
};

struct TileProduct {
  Layout source, target;
  int taps = 1;
  const TileBlock* blocks = nullptr;  // TilePlan
  const TileRun* runs = nullptr;
  const TileStep* steps = nullptr;
  const TileJoin* joins = nullptr;
  int slots = 1;  // threads at most
  const Columns* columns =
      nullptr;  // makes the source; then taps is 1, and buffers of column_buffer_size() are needed
  Bf16* column_buffers = nullptr;
};

std::size_t column_buffer_size(const TileProduct& product);  // numbers, for all slots

// A source that is yet to be made (how: not null), and SourceReads of the product's units.
struct SourceMaking {
  const Making* how = nullptr;
  const std::int32_t* until = nullptr;
  const std::int32_t* from = nullptr;
};

// target = sum over steps of source tiles times pack blocks. `target` has its padding rows zero.
// Units of `making` are the blocks of the plan, lot by lot.
void run_product(const TileProduct& product, const Bf16* source, const Bf16* pack, Bf16* target,
                 const Finish& finish, const SourceMaking& making = {});
// Of a plan for these layouts.
SourceReads source_reads(const TilePlan& plan, const Layout& source, const Layout& target);

// The same for dense layers whose images are one lot, from stored weights: each weight is used once
// in a pass, so that reading them is what takes the time.
void run_dense_forward(const TileProduct& forward, const Bf16* source, const float* stored,
                       Bf16* target, const Finish& finish);

// Both gradients of such a layer in one pass over its weights.
struct DenseBackward {
  Layout source, target;
  int taps = 1;
  int slots = 1;
};
inline std::size_t dense_turned_size(const Layout& target) {  // numbers of scratch
  return std::size_t(target.planes) * kBlock;
}
struct DenseGradients {
  const Bf16* source = nullptr;
  const Bf16* target_gradient = nullptr;
  const float* stored = nullptr;
  Bf16* turned = nullptr;
  Bf16* source_gradient = nullptr;   // null: not wanted
  float* weight_gradient = nullptr;  // not written where there is
  WeightUpdate* update = nullptr;    // which moves the stored weights instead
};
void run_dense_backward(const DenseBackward& dense, const DenseGradients& gradients);

// Gradients of weights. A window of kernel_height x kernel_width slides over the source (a dense
// layer's covers all of it).
struct Slide {
  int height = 1, width = 1;
  int out_height = 1, out_width = 1;
  int kernel_height = 1, kernel_width = 1;
  int stride = 1, padding = 0;
  bool columns = false;  // the source is made of columns, for all in planes at once
};
// The work is cut into *cells*, each done by one thread from beginning to end with turned blocks of
// its own: either some in planes and out planes over all images, or, where there are few planes,
// all of them over a *part* of the images, whose sums are then added up. Cells go slab by slab:
// some lots, rows and steps (columns) of the target, whose blocks are turned and then multiplied.
// No sum depends on the number of threads.
//   turned gradient [out plane][lot][row][column][16 row pairs x 32 channels]: a block is a column
//   of 32 / lot rows of the target, called one row from here on.
//   turned source   [in plane][lot][row][column][32 channels][32 rows]: a block is a column of as
//   many rows of the source, `stride` apart; padding columns are included. Rows that the next slab
//   needs again stay: the rows of all slabs are counted on, and row r is in slot r mod
//   source_rows().
struct WeightProduct {
  Layout source, target;
  WeightShape shape;
  Slide slide;
  int images = 32;         // in a block
  int rows = 1;            // of the target, as turned
  int source_blocks = 1;   // per turned source row
  int column_advance = 1;  // source columns from one block to the next
  int row_advance = 1;     // source rows from one turned row to the next
  int slab_lots = 1, slab_rows = 1, slab_steps = 1;
  int parts = 1, in_parts = 1, out_parts = 1;  // cells are their product
  int slots = 1;
  const Columns* columns = nullptr;  // makes the source

  int block_rows() const { return 32 / images; }
  int step_advance() const { return slide.stride / column_advance; }  // in blocks
  int row_stride() const {                                            // in turned rows
    return block_rows() * (slide.stride / row_advance);
  }
  int source_rows() const { return (slab_rows - 1) * row_stride() + slide.kernel_height; }
  int all_rows() const { return (rows - 1) * row_stride() + slide.kernel_height; }
  int slabs() const {
    const auto cuts = [](int whole, int part) { return (whole + part - 1) / part; };
    return cuts(target.lots, slab_lots) * cuts(rows, slab_rows) * cuts(slide.out_width, slab_steps);
  }
  std::size_t source_row_size() const { return std::size_t(source_blocks) * kBlock; }
  std::size_t source_plane_size() const { return source_row_size() * source_rows() * slab_lots; }
  std::size_t target_plane_size() const {
    return std::size_t(slab_lots) * slab_rows * slab_steps * kBlock;
  }
  int cell_ins() const { return (shape.in_planes + in_parts - 1) / in_parts; }
  int cell_outs() const { return (shape.out_planes + out_parts - 1) / out_parts; }
  std::size_t cell_size() const {  // numbers of scratch, for one thread
    return source_plane_size() * cell_ins() + target_plane_size() * cell_outs();
  }
  std::size_t turned_size() const {  // numbers of scratch: for all threads, and sums of parts
    return cell_size() * slots + (parts - 1) * shape.size() * sizeof(float) / sizeof(Bf16);
  }
};
WeightProduct plan_weight_product(const Layout& source, const Layout& target,
                                  const WeightShape& shape, Slide slide, int slots);
struct WeightGradient {
  float* sums = nullptr;  // written
  // Where there is one, weights are moved while their gradient is in the cache.
  WeightUpdate* update = nullptr;
  const float* stored = nullptr;
};
void run_weight_product(const WeightProduct& product, const Bf16* source,
                        const Bf16* target_gradient, Bf16* turned, const WeightGradient& gradient);

// gradient := gradient where output > 0, else 0 (output may be null: kept), and its sums over rows,
// [lanes], in front of `sums`, which has room for layout.partials() of them.
void mask_and_sum(const Layout& layout, const Bf16* output, Bf16* gradient, double* sums);

}  // namespace convoy::amx
