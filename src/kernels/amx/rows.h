// Kernels that work row by row: conversions, elementwise layers, batch norm, pooling. Values in the
// layout of layout.h.
#pragma once

#include "kernels/amx/layout.h"
#include "kernels/amx/windows.h"

namespace convoy::amx {

// Plain f32 [batch][channels][positions] to a value and back.
void import_plain(const Layout& layout, const float* plain, Bf16* value);
void export_plain(const Layout& layout, const Bf16* value, float* plain);

void relu_forward(const Layout& layout, const Bf16* x, Bf16* y);
// to = gradient where y > 0, else 0.
void relu_backward(const Layout& layout, const Bf16* y, const Bf16* gradient, Bf16* to);
void add_values(const Layout& layout, const Bf16* a, const Bf16* b, bool relu, Bf16* y);
// y = x * scale where the row's bit is set, else 0; bits: [rows of the value] words of 32 lanes.
void scale_where(const Layout& layout, const std::uint32_t* bits, float scale, const Bf16* x,
                 Bf16* y);

// A target plane put together from lanes of source planes: target lane l is source lane (l -
// rotate) mod 32 for l in `lanes`.
struct LanePiece {
  int source = 0;  // which value
  int plane = 0;   // of that value
  int rotate = 0;
  std::uint32_t lanes = 0;
};
struct SourceValue {
  const Bf16* value;
  int planes;
};
// Pieces of target plane p: [begin[p], begin[p + 1]).
void regroup(const Layout& target, const std::int32_t* begin, const LanePiece* pieces,
             const SourceValue* sources, Bf16* value);

// Adds up partial sums, [Layout::partials()][width], in order, into the first.
void add_partials(const Layout& layout, int width, double* sums);

// Batch norm over lanes. y = scale * x + shift (+ residual), then ReLU; see making.h.
struct NormLanes {
  const float* scale;
  const float* shift;
};
// Sums come out in front of `sums`, which has room for Layout::partials() of them.
void norm_sums(const Layout& layout, const Bf16* x, double* sums);  // [2][lanes]: of x, of x * x
// g is the gradient where the output was positive (relu), else as it is. The sign comes from `y`,
// and then g takes the gradient's place; or, where y is null, from x anew.
struct NormGradient {
  const Bf16* x;
  Bf16* gradient;
  const Bf16* y;
  NormLanes lanes;
  bool relu;
};
void norm_gradient_sums(const Layout& layout, const NormGradient& n,
                        double* sums);  // [2][lanes]: of g, of g * x
struct WindowView {
  const int* begin;
  const Reference* references;
};
// index: [lots][planes][target positions][lot][32], the tap of the largest; may be null.
// With `relu`, where no number of a window is positive the result is 0 and the index kNobody.
constexpr int kNobody = 255;
void max_pool_forward(const Layout& source, const Layout& target, WindowView windows, bool relu,
                      const Bf16* x, Bf16* y, std::uint8_t* index);
// `windows` are inverse: for each source position the targets that read it.
void max_pool_backward(const Layout& source, const Layout& target, WindowView windows,
                       const Bf16* gradient, const std::uint8_t* index, Bf16* to);
// y[t] = factor[t] * sum of x over the window; backwards: to[s] = sum over targets t of factor[t] *
// gradient[t].
void average_pool_forward(const Layout& source, const Layout& target, WindowView windows,
                          const float* factor, const Bf16* x, Bf16* y);
void average_pool_backward(const Layout& source, const Layout& target, WindowView windows,
                           const float* factor, const Bf16* gradient, Bf16* to);

}  // namespace convoy::amx
