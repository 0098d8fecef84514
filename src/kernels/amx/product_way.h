// How a convolution or a dense layer is carried out: ways to make the same numbers, of which one is
// chosen when the layer is bound.
#pragma once

#include <memory>

#include "kernels/amx/columns.h"
#include "kernels/amx/product.h"
#include "kernels/amx/product_weights.h"
#include "kernels/family.h"

namespace convoy::amx {

struct ProductValues {
  const Bf16* source = nullptr;
  const Making* making = nullptr;  // what is left to do for it; null: nothing
  const float* stored = nullptr;   // weights
  Bf16* target = nullptr;
  Finish finish;
  std::byte* scratch = nullptr;
};

struct ProductGradients {
  const Bf16* source = nullptr;
  const Bf16* target_gradient = nullptr;
  const float* stored = nullptr;     // weights, as they are before they move
  float* weight_gradient = nullptr;  // written, unless there is
  WeightUpdate* update = nullptr;    // which moves the stored weights instead
  Bf16* source_gradient = nullptr;   // null: not wanted
  Finish finish;                     // of it
  const Making* making = nullptr;    // what is left to do for the target's gradient
  std::byte* scratch = nullptr;
  BackwardTimes* times = nullptr;  // added to, where given
};

class ProductWay {
 public:
  virtual ~ProductWay() = default;
  // Whether it takes norms' sums, adds to gradients, takes their sums and makes what is left of its
  // source or its target's gradient; else finishes are plain, bias and logits.
  virtual bool finishes_all() const { return true; }
  virtual std::size_t scratch_bytes() const = 0;  // of both passes, 64-byte aligned
  virtual void forward(const ProductValues& values) = 0;
  virtual void backward(const ProductGradients& gradients) = 0;
};

// The fastest for this layer. Where images are laid out as columns, the source is what the plan
// pads, and the plan stays where it is.
struct WaySpec {
  const OpSpec& spec;
  const ProductForm& form;
  Layout source, target;
  const ColumnPlan* columns = nullptr;
};
std::unique_ptr<ProductWay> choose_way(const WaySpec& way);

// The window that a convolution slides over its input.
WindowSpec window_of(const OpSpec& spec);

}  // namespace convoy::amx
