// What convolution and dense layers have in common: three products, each a Pass.
#pragma once

#include "kernels/family.h"
#include "kernels/onednn/engine.h"

namespace convoy::onednn {

struct ProductPasses {
  std::unique_ptr<Pass> forward;  // SRC, WEIGHTS, BIAS -> DST; a folded ReLU included
  std::unique_ptr<Pass>
      backward_weights;                 // SRC, DIFF_DST -> DIFF_WEIGHTS, DIFF_BIAS; training only
  std::unique_ptr<Pass> backward_data;  // WEIGHTS, DIFF_DST -> DIFF_SRC; training only, where the
                                        // input's gradient is wanted
};

class ProductOp : public Op {
 public:
  ProductOp(const OpSpec& spec, bool relu, ProductPasses passes);

  const OpTraits& traits() const override { return traits_; }
  void forward(const ForwardArgs& args) override;
  void backward(const BackwardArgs& args) override;
  const ProductPasses& passes() const { return passes_; }

 private:
  OpSpec spec_;
  bool relu_;
  ProductPasses passes_;
  OpTraits traits_;
};

}  // namespace convoy::onednn
