// Batch norm, with a following ReLU fused where folded.
#include "kernels/onednn/engine.h"
#include "kernels/onednn/ops.h"

namespace convoy::onednn {
namespace {

using Flags = dnnl::normalization_flags;
using Forward = dnnl::batch_normalization_forward;
using Backward = dnnl::batch_normalization_backward;

// Saved for backward: batch mean, batch variance, then oneDNN's record of where the ReLU cut.
class BatchNormOp : public Op {
 public:
  BatchNormOp(const BatchNorm& layer, const OpSpec& spec)
      : layer_(layer), spec_(spec), channels_(spec.output.channels) {
    const Desc value = value_desc(spec.output, spec.batch);
    Flags flags = Flags::use_scale | Flags::use_shift;
    if (layer.relu) flags |= Flags::fuse_norm_relu;
    if (!spec.training) flags |= Flags::use_global_stats;
    const auto kind =
        spec.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const Forward::primitive_desc forward(Forward::desc(kind, value, layer.epsilon, flags),
                                          scratchpad_attr(), engine());
    forward_ = Call(Forward(forward));
    forward_.argument(DNNL_ARG_SRC, value);
    forward_.argument(DNNL_ARG_DST, value);
    describe_parameters(forward_, DNNL_ARG_SCALE, DNNL_ARG_SHIFT);
    forward_.argument(DNNL_ARG_WORKSPACE, forward.workspace_desc());
    forward_.argument(DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc());
    traits_.scratch_bytes = forward.scratchpad_desc().get_size();
    if (!spec.training) return;

    Flags backward_flags = Flags::use_scale | Flags::use_shift;
    if (layer.relu) backward_flags |= Flags::fuse_norm_relu;
    const Backward::primitive_desc backward(
        Backward::desc(dnnl::prop_kind::backward, value, value, layer.epsilon, backward_flags),
        scratchpad_attr(), engine(), forward);
    backward_ = Call(Backward(backward));
    for (int name : {DNNL_ARG_SRC, DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST})
      backward_.argument(name, value);
    describe_parameters(backward_, DNNL_ARG_SCALE, DNNL_ARG_SHIFT);
    backward_.argument(DNNL_ARG_DIFF_SCALE, vector_desc(channels_));
    backward_.argument(DNNL_ARG_DIFF_SHIFT, vector_desc(channels_));
    backward_.argument(DNNL_ARG_WORKSPACE, forward.workspace_desc());
    backward_.argument(DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc());
    traits_.scratch_bytes = std::max(traits_.scratch_bytes, backward.scratchpad_desc().get_size());
    traits_.reads_inputs = true;
    traits_.gradient_in_place = true;
    traits_.saved_bytes = workspace_offset() + forward.workspace_desc().get_size();
  }

  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    float* mean = spec_.training ? reinterpret_cast<float*>(args.saved) : spec_.running_mean;
    float* variance = spec_.training ? mean + padded() : spec_.running_variance;
    forward_.point(DNNL_ARG_SRC, args.inputs[0]);
    forward_.point(DNNL_ARG_DST, args.output);
    point_parameters(forward_, mean, variance);
    forward_.point(DNNL_ARG_WORKSPACE, args.saved + workspace_offset());
    forward_.point(DNNL_ARG_SCRATCHPAD, args.scratch);
    forward_.execute();
    if (spec_.training) update_running_statistics(mean, variance);
  }

  void backward(const BackwardArgs& args) override {
    const float* mean = reinterpret_cast<const float*>(args.saved);
    backward_.point(DNNL_ARG_SRC, args.inputs[0]);
    backward_.point(DNNL_ARG_DIFF_DST, args.output_gradient);
    // Without an input gradient wanted, it goes where the output gradient was: nobody reads either
    // again.
    backward_.point(DNNL_ARG_DIFF_SRC,
                    args.input_gradients[0] ? args.input_gradients[0] : args.output_gradient);
    point_parameters(backward_, mean, mean + padded());
    backward_.point(DNNL_ARG_DIFF_SCALE, spec_.weight_gradient);
    backward_.point(DNNL_ARG_DIFF_SHIFT, spec_.bias_gradient);
    backward_.point(DNNL_ARG_WORKSPACE, args.saved + workspace_offset());
    backward_.point(DNNL_ARG_SCRATCHPAD, args.scratch);
    backward_.execute();
  }

 private:
  std::size_t padded() const { return std::size_t(channels_ + 15) / 16 * 16; }
  std::size_t workspace_offset() const { return spec_.training ? 2 * padded() * sizeof(float) : 0; }

  void describe_parameters(Call& call, int scale, int shift) const {
    for (int name : {DNNL_ARG_MEAN, DNNL_ARG_VARIANCE, scale, shift})
      call.argument(name, vector_desc(channels_));
  }

  void point_parameters(Call& call, const float* mean, const float* variance) const {
    call.point(DNNL_ARG_MEAN, mean);
    call.point(DNNL_ARG_VARIANCE, variance);
    call.point(DNNL_ARG_SCALE, spec_.weight);
    call.point(DNNL_ARG_SHIFT, spec_.bias);
  }

  // The running variance is the unbiased one, as in PyTorch.
  void update_running_statistics(const float* mean, const float* variance) const {
    const double count = double(spec_.batch) * spec_.output.area();
    const float unbias = count > 1 ? float(count / (count - 1)) : 1.0f;
    const float keep = 1 - layer_.momentum;
    for (int c = 0; c < channels_; ++c) {
      spec_.running_mean[c] = keep * spec_.running_mean[c] + layer_.momentum * mean[c];
      spec_.running_variance[c] =
          keep * spec_.running_variance[c] + layer_.momentum * unbias * variance[c];
    }
  }

  BatchNorm layer_;
  OpSpec spec_;
  int channels_;
  OpTraits traits_;
  Call forward_, backward_;
};

}  // namespace

std::unique_ptr<Op> make_batch_norm(const BatchNorm& layer, const OpSpec& spec) {
  return std::make_unique<BatchNormOp>(layer, spec);
}

}  // namespace convoy::onednn
