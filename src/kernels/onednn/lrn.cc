// Local response normalisation across channels.
#include "kernels/onednn/engine.h"
#include "kernels/onednn/ops.h"

namespace convoy::onednn {
namespace {

using Forward = dnnl::lrn_forward;
using Backward = dnnl::lrn_backward;

class LocalResponseNormOp : public Op {
 public:
  LocalResponseNormOp(const LocalResponseNorm& layer, const OpSpec& spec) {
    // oneDNN's vector kernels exist for whole blocks of channels only; its plain one takes every
    // layout.
    const Desc value = value_desc(spec.output, spec.batch);
    const auto kind =
        spec.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const auto across = dnnl::algorithm::lrn_across_channels;
    const Forward::primitive_desc forward(
        Forward::desc(kind, across, value, layer.size, layer.alpha, layer.beta, layer.k),
        scratchpad_attr(), engine());
    forward_ = Call(Forward(forward));
    forward_.argument(DNNL_ARG_SRC, value);
    forward_.argument(DNNL_ARG_DST, value);
    forward_.argument(DNNL_ARG_WORKSPACE, forward.workspace_desc());
    forward_.argument(DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc());
    traits_.scratch_bytes = forward.scratchpad_desc().get_size();
    if (!spec.training) return;
    const Backward::primitive_desc backward(
        Backward::desc(across, value, value, layer.size, layer.alpha, layer.beta, layer.k),
        scratchpad_attr(), engine(), forward);
    backward_ = Call(Backward(backward));
    for (int name : {DNNL_ARG_SRC, DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST})
      backward_.argument(name, value);
    backward_.argument(DNNL_ARG_WORKSPACE, forward.workspace_desc());
    backward_.argument(DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc());
    traits_.scratch_bytes = std::max(traits_.scratch_bytes, backward.scratchpad_desc().get_size());
    traits_.reads_inputs = true;
    traits_.saved_bytes = forward.workspace_desc().get_size();
  }
  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    forward_.point(DNNL_ARG_SRC, args.inputs[0]);
    forward_.point(DNNL_ARG_DST, args.output);
    forward_.point(DNNL_ARG_WORKSPACE, args.saved);
    forward_.point(DNNL_ARG_SCRATCHPAD, args.scratch);
    forward_.execute();
  }

  void backward(const BackwardArgs& args) override {
    if (args.input_gradients[0] == nullptr) return;
    backward_.point(DNNL_ARG_SRC, args.inputs[0]);
    backward_.point(DNNL_ARG_DIFF_DST, args.output_gradient);
    backward_.point(DNNL_ARG_DIFF_SRC, args.input_gradients[0]);
    backward_.point(DNNL_ARG_WORKSPACE, args.saved);
    backward_.point(DNNL_ARG_SCRATCHPAD, args.scratch);
    backward_.execute();
  }

 private:
  OpTraits traits_;
  Call forward_, backward_;
};

}  // namespace

std::unique_ptr<Op> make_local_response_norm(const LocalResponseNorm& layer, const OpSpec& spec) {
  return std::make_unique<LocalResponseNormOp>(layer, spec);
}

}  // namespace convoy::onednn
