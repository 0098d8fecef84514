// Convolution and dense layers as tile products, driven by lists of tiles (windows.h). All values
// in the layout of layout.h. Weights come as packs of 32 x 32 blocks:
//   forward  [out plane][tap][in plane]: in-channel pairs x out channels (two tiles of 16 out
//   channels), backward [in plane][tap][out plane]: out-channel pairs x in channels,
// made from stored weights [tap][in plane][out plane][32 in][32 out] of f32, which is how gradients
// come out as well.
#pragma once

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
  enum Kind { plain, bias, norm_sums, logits } kind = plain;
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
};

// target = sum over steps of source tiles times pack blocks. `target` has its padding rows zero.
void run_product(const TileProduct& product, const Bf16* source, const Bf16* pack, Bf16* target,
                 const Finish& finish);

// Adds up the threads' partial sums into the value's trailer.
void finish_norm_sums(const Layout& layout, int slots, const double* partial, Bf16* value);

// Gradients of weights.
struct GatherView {
  int first, last;  // target blocks
  int gather_count;
  const Gather32* gathers;
  const std::int32_t* begin;  // per tap
  const GatherPair* pairs;
};
struct WeightProduct {
  Layout source, target;
  WeightShape shape;
  const GatherView* chunks = nullptr;
  int chunk_count = 0;  // 1: threads share the weight blocks; more: they share lots and chunks
  int slots = 1;
};
// Bf16 numbers of scratch for turned blocks, and floats of scratch for the threads' own sums.
std::size_t turned_size(const WeightProduct& product);
std::size_t own_sums_size(const WeightProduct& product);
void run_weight_product(const WeightProduct& product, const Bf16* source,
                        const Bf16* target_gradient, Bf16* turned, float* own_sums,
                        float* gradient);

// gradient := gradient where output > 0, else 0 (output may be null: kept), and its sums over rows:
// partial [slots][lanes].
void mask_and_sum(const Layout& layout, int slots, const Bf16* output, Bf16* gradient,
                  double* partial);
// result[channel] = sum over slots, for the first `channels` lanes.
void add_partials(int slots, int lanes, int channels, const double* partial, float* result);

}  // namespace convoy::amx
