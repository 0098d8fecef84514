// Batch norm in training (statistics of the batch, from the trailer where a convolution left them;
// or of the batches of all workers) and in evaluation (running statistics). With a second input,
// that is added before the ReLU.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/amx/ops.h"
#include "kernels/amx/product.h"
#include "kernels/amx/rows.h"
#include "kernels/norm_statistics.h"
#include "kernels/parallel.h"

namespace convoy::amx {

namespace {

class NormOp : public Op {
 public:
  explicit NormOp(const OpSpec& spec)
      : spec_(spec),
        norm_(std::get<BatchNorm>(spec.layer)),
        residual_(spec.inputs.size() == 2),
        layout_(layout_of(spec.output, spec.batch)),
        statistics_(spec.exchange, spec.output.channels) {
    const std::size_t lanes = layout_.lanes() * sizeof(float);
    traits_ = {.reads_inputs = spec.training,
               .reads_output = spec.training && norm_.relu && residual_,
               .in_place = !spec.training && !residual_,
               .gradient_in_place = !residual_,
               .spoils_gradient = residual_ && norm_.relu,
               .passes_second = residual_,
               .sums_bytes = sums_bytes(layout_),
               .sums_with_input = true,
               .sums_behind_relu = norm_.relu,
               .saves_signs = spec.training && norm_.relu && !residual_,
               .left_bytes = spec.training ? left_bytes(layout_) : 0,
               .saved_bytes = spec.training ? 4 * lanes : 0,
               .scratch_bytes = 4 * lanes + sums_bytes(layout_)};
  }

  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    // Per lane: scale, shift, mean, 1 / deviation. Zero for the lanes that pad.
    auto* lanes = reinterpret_cast<float*>(spec_.training ? args.saved : args.scratch);
    std::fill_n(lanes, 4 * layout_.lanes(), 0.0f);
    const Bf16* x = value(args.inputs[0]);
    if (spec_.training) {
      batch_statistics(x, partial(args.scratch), lanes);
    } else {
      for (int c = 0; c < spec_.output.channels; ++c)
        set_lane(lanes, c, spec_.running_mean[c], spec_.running_variance[c]);
    }
    leave_or_make({.x = x,
                   .more = residual_ ? value(args.inputs[1]) : nullptr,
                   .to = value(args.output),
                   .a = lanes,
                   .c = lanes + layout_.lanes(),
                   .floor = norm_.relu ? 0.0f : -std::numeric_limits<float>::infinity()},
                  args.leave);
    leave_no_sums(layout_, args.output);
  }

  void backward(const BackwardArgs& args) override {
    const int n = layout_.lanes();
    const auto* lanes = reinterpret_cast<const float*>(args.saved);
    NormGradient g{.x = value(args.inputs[0]),
                   .gradient = value(args.output_gradient),
                   .y = traits_.reads_output ? value(args.output) : nullptr,
                   .lanes = {.scale = lanes, .shift = lanes + n},
                   .relu = norm_.relu};
    const auto* sums = reinterpret_cast<const double*>(args.taken);
    if (sums) {
      g.relu = false;  // whoever took them has seen to it
    } else {
      double* mine = partial(args.scratch);
      norm_gradient_sums(layout_, g, mine);
      sums = mine;
    }
    for (int c = 0; c < spec_.output.channels; ++c) {
      const double of_g = sums[c], of_gx = sums[n + c];
      const double mean = lanes[2 * n + c], inverse = lanes[3 * n + c];
      const double of_normalized = inverse * (of_gx - mean * of_g);
      spec_.weight_gradient[c] = float(of_normalized);
      spec_.bias_gradient[c] = float(of_g);
      statistics_.set(c, of_g, of_normalized);
    }
    statistics_.share_gradients();
    // Where this is left to others, the lanes must stay.
    auto* a = reinterpret_cast<float*>(args.leave ? args.leave + sizeof(Making) : args.scratch);
    std::fill_n(a, 3 * n, 0.0f);
    const double count = statistics_.count();
    for (int c = 0; c < spec_.output.channels; ++c) {
      const double mean = lanes[2 * n + c], inverse = lanes[3 * n + c],
                   scale = spec_.weight[c] * inverse;
      const double slope = -scale * inverse * statistics_.second(c) / count;
      a[c] = float(scale);
      a[n + c] = float(slope);
      a[2 * n + c] = float(-scale * statistics_.first(c) / count - slope * mean);
    }
    if (!args.input_gradients[0]) return;
    const bool sign = g.relu && !g.y;  // y's has been seen to with the sums
    leave_or_make({.x = g.gradient,
                   .more = g.x,
                   .to = value(args.input_gradients[0]),
                   .a = a,
                   .b = a + n,
                   .c = a + 2 * n,
                   .scale = sign ? g.lanes.scale : nullptr,
                   .shift = g.lanes.shift},
                  args.leave);
  }

 private:
  void leave_or_make(const Making& making, std::byte* leave) const {
    if (leave)
      *reinterpret_cast<Making*>(leave) = making;
    else
      make_value(layout_, making);
  }

  double* partial(std::byte* scratch) const {
    return reinterpret_cast<double*>(scratch + 4 * layout_.lanes() * sizeof(float));
  }

  void set_lane(float* lanes, int c, double mean, double variance) const {
    const int n = layout_.lanes();
    const double inverse = 1 / std::sqrt(variance + norm_.epsilon);
    lanes[c] = float(spec_.weight[c] * inverse);
    lanes[n + c] = float(spec_.bias[c] - mean * spec_.weight[c] * inverse);
    lanes[2 * n + c] = float(mean);
    lanes[3 * n + c] = float(inverse);
  }

  void batch_statistics(const Bf16* x, double* sums, float* lanes) {
    const int n = layout_.lanes();
    const NormSums* trailer = layout_.trailer(x);
    const bool left = trailer->valid == 1;
    if (!left) norm_sums(layout_, x, sums);
    const double* of_x = left ? trailer->sum() : sums;
    for (int c = 0; c < spec_.output.channels; ++c) statistics_.set(c, of_x[c], of_x[n + c]);
    statistics_.share_moments(double(spec_.batch) * layout_.positions);
    for (int c = 0; c < spec_.output.channels; ++c)
      set_lane(lanes, c, statistics_.mean(c), statistics_.variance(c));
    if (spec_.running_mean)
      statistics_.update_running(norm_.momentum, spec_.running_mean, spec_.running_variance);
  }

  OpSpec spec_;
  BatchNorm norm_;
  bool residual_;
  Layout layout_;
  NormStatistics statistics_;
  OpTraits traits_;
};

}  // namespace

std::unique_ptr<Op> make_norm(const OpSpec& spec) { return std::make_unique<NormOp>(spec); }

}  // namespace convoy::amx
