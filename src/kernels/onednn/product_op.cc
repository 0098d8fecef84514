#include "kernels/onednn/product_op.h"

#include <algorithm>

#include "base/clock.h"
#include "kernels/onednn/ops.h"

namespace convoy::onednn {

ProductOp::ProductOp(const OpSpec& spec, bool relu, ProductPasses passes)
    : spec_(spec), relu_(relu), passes_(std::move(passes)) {
  for (const auto* pass : {&passes_.forward, &passes_.backward_weights, &passes_.backward_data})
    if (*pass) traits_.scratch_bytes = std::max(traits_.scratch_bytes, (*pass)->scratch_bytes());
  traits_.reads_inputs = spec.training;
  traits_.reads_output = spec.training && relu;
  traits_.spoils_gradient = relu;
}

void ProductOp::forward(const ForwardArgs& args) {
  passes_.forward->run({{DNNL_ARG_SRC, args.inputs[0]},
                        {DNNL_ARG_WEIGHTS, spec_.weight},
                        {DNNL_ARG_BIAS, spec_.bias},
                        {DNNL_ARG_DST, args.output}},
                       args.scratch);
}

void ProductOp::backward(const BackwardArgs& args) {
  if (relu_)
    mask_gradient(reinterpret_cast<float*>(args.output_gradient),
                  reinterpret_cast<const float*>(args.output),
                  value_floats(spec_.output) * spec_.batch);
  const double start = args.times ? now_s() : 0;
  passes_.backward_weights->run({{DNNL_ARG_SRC, args.inputs[0]},
                                 {DNNL_ARG_DIFF_DST, args.output_gradient},
                                 {DNNL_ARG_DIFF_WEIGHTS, spec_.weight_gradient},
                                 {DNNL_ARG_DIFF_BIAS, spec_.bias_gradient}},
                                args.scratch);
  const double middle = args.times ? now_s() : 0;
  if (args.times) args.times->weights_s += middle - start;
  if (args.input_gradients[0] == nullptr) return;
  passes_.backward_data->run({{DNNL_ARG_WEIGHTS, spec_.weight},
                              {DNNL_ARG_DIFF_DST, args.output_gradient},
                              {DNNL_ARG_DIFF_SRC, args.input_gradients[0]}},
                             args.scratch);
  if (args.times) args.times->data_s += now_s() - middle;
}

}  // namespace convoy::onednn
