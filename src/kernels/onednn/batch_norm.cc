// Batch norm, with a following ReLU fused where folded.
//
// Where statistics are shared with other workers, oneDNN takes them for fixed numbers, as it does
// in evaluation: it normalises by them and gives this worker's part of the parameters' gradients.
// What is left is done here: the sums before forward, and after backward the two terms of the
// gradient that lead through the batch's mean and variance.
#include <cmath>

#include "kernels/norm_statistics.h"
#include "kernels/onednn/engine.h"
#include "kernels/onednn/norm_planes.h"
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
      : layer_(layer),
        spec_(spec),
        channels_(spec.output.channels),
        shared_(spec.training && spec.exchange),
        statistics_(spec.exchange, channels_) {
    const Desc value = value_desc(spec.output, spec.batch);
    Flags flags = Flags::use_scale | Flags::use_shift;
    if (layer.relu) flags |= Flags::fuse_norm_relu;
    if (!spec.training || shared_) flags |= Flags::use_global_stats;
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

    const Backward::primitive_desc backward(
        Backward::desc(dnnl::prop_kind::backward, value, value, layer.epsilon, flags),
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
    if (shared_) {
      traits_.scratch_bytes =
          std::max(traits_.scratch_bytes, channel_sums_bytes(spec.output, spec.batch));
      slope_.resize(padded());
      offset_.resize(padded());
    }
    traits_.reads_inputs = true;
    traits_.gradient_in_place = true;
    traits_.saved_bytes = workspace_offset() + forward.workspace_desc().get_size();
  }

  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    float* mean = spec_.training ? reinterpret_cast<float*>(args.saved) : spec_.running_mean;
    float* variance = spec_.training ? mean + padded() : spec_.running_variance;
    if (shared_) share_moments(args, mean, variance);
    forward_.point(DNNL_ARG_SRC, args.inputs[0]);
    forward_.point(DNNL_ARG_DST, args.output);
    point_parameters(forward_, mean, variance);
    forward_.point(DNNL_ARG_WORKSPACE, args.saved + workspace_offset());
    forward_.point(DNNL_ARG_SCRATCHPAD, args.scratch);
    forward_.execute();
    if (spec_.training && !shared_) update_running_statistics(mean, variance);
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
    if (shared_) share_gradients(args, mean, mean + padded());
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

  void share_moments(const ForwardArgs& args, float* mean, float* variance) {
    channel_sums(spec_.output, spec_.batch, reinterpret_cast<const float*>(args.inputs[0]),
                 reinterpret_cast<double*>(args.scratch), statistics_);
    statistics_.share_moments(double(spec_.batch) * double(spec_.output.area()));
    for (int c = 0; c < channels_; ++c) {
      mean[c] = float(statistics_.mean(c));
      variance[c] = float(statistics_.variance(c));
    }
    statistics_.update_running(layer_.momentum, spec_.running_mean, spec_.running_variance);
  }

  // With h = (x - mean) / deviation the gradient of x is weight / deviation * (g - mean of g - h *
  // mean of (g * h)), of which oneDNN gave the first term.
  void share_gradients(const BackwardArgs& args, const float* mean, const float* variance) {
    for (int c = 0; c < channels_; ++c)
      statistics_.set(c, spec_.bias_gradient[c], spec_.weight_gradient[c]);
    statistics_.share_gradients();
    if (!args.input_gradients[0]) return;
    for (int c = 0; c < channels_; ++c) {
      const double inverse = 1 / std::sqrt(double(variance[c]) + layer_.epsilon);
      const double scale = spec_.weight[c] * inverse / statistics_.count();
      const double slope = -scale * inverse * statistics_.second(c);
      slope_[c] = float(slope);
      offset_[c] = float(-scale * statistics_.first(c) - slope * mean[c]);
    }
    add_linear(spec_.output, spec_.batch, slope_, offset_,
               reinterpret_cast<const float*>(args.inputs[0]),
               reinterpret_cast<float*>(args.input_gradients[0]));
  }

  BatchNorm layer_;
  OpSpec spec_;
  int channels_;
  bool shared_;  // with other workers
  NormStatistics statistics_;
  std::vector<float> slope_, offset_;  // zero for the channels that pad
  OpTraits traits_;
  Call forward_, backward_;
};

}  // namespace

std::unique_ptr<Op> make_batch_norm(const BatchNorm& layer, const OpSpec& spec) {
  return std::make_unique<BatchNormOp>(layer, spec);
}

}  // namespace convoy::onednn
