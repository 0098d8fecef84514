// Convolution and dense layers: bound lists and buffers around the kernels of product.h.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "kernels/amx/columns.h"
#include "kernels/amx/ops.h"
#include "kernels/amx/product.h"
#include "kernels/amx/product_weights.h"
#include "kernels/amx/rows.h"
#include "kernels/amx/winograd.h"
#include "kernels/parallel.h"

namespace convoy::amx {

namespace {

WindowSpec window_of(const OpSpec& spec) {
  const auto& c = std::get<Convolution>(spec.layer);
  return {.height = spec.inputs[0].height,
          .width = spec.inputs[0].width,
          .out_height = spec.output.height,
          .out_width = spec.output.width,
          .kernel = c.kernel,
          .stride = c.stride,
          .padding = c.padding};
}

// Which target positions read which source positions, as far as the tiles see it.
Windows windows_of(const OpSpec& spec, const ProductForm& form) {
  if (form.dense) return whole_window(form.columns ? 1 : int(spec.inputs[0].area()));
  if (!form.columns) return sliding_windows(window_of(spec));
  return sliding_windows({.height = spec.output.height,
                          .width = spec.output.width,
                          .out_height = spec.output.height,
                          .out_width = spec.output.width});
}

// The same, as the weight gradients see it.
Slide slide_of(const OpSpec& spec, const ProductForm& form) {
  const Shape in = spec.inputs[0], out = spec.output;
  if (form.dense && form.columns) return {};
  if (form.dense) {
    return {.height = in.height,
            .width = in.width,
            .kernel_height = in.height,
            .kernel_width = in.width};
  }
  if (form.columns) {
    return {.height = out.height,
            .width = out.width,
            .out_height = out.height,
            .out_width = out.width,
            .columns = true};
  }
  const auto& c = std::get<Convolution>(spec.layer);
  return {.height = in.height,
          .width = in.width,
          .out_height = out.height,
          .out_width = out.width,
          .kernel_height = c.kernel,
          .kernel_width = c.kernel,
          .stride = c.stride,
          .padding = c.padding};
}

WinogradProduct winograd_of(const OpSpec& spec, const Convolution& c, int batch) {
  const Shape in = spec.inputs[0], out = spec.output;
  return {.source = layout_of(in, batch),
          .target = layout_of(out, batch),
          .height = in.height,
          .width = in.width,
          .out_height = out.height,
          .out_width = out.width,
          .before = c.padding,
          .slots = threads()};
}

// Whether the layer is one that Winograd's algorithm carries out, and sooner.
bool takes_winograd(const OpSpec& spec, const ProductForm& form) {
  if (form.dense || form.columns || form.groups > 1 || spec.last) return false;
  const auto& c = std::get<Convolution>(spec.layer);
  // For all batches alike, the last of an epoch too.
  const int batch = spec.tuning_batch > 0 ? spec.tuning_batch : spec.batch;
  return c.kernel == 3 && c.stride == 1 && winograd_pays(winograd_of(spec, c, batch));
}

class ProductOp : public Op {
 public:
  explicit ProductOp(const OpSpec& spec)
      : spec_(spec),
        form_(product_form(spec)),
        slots_(threads()),
        target_(layout_of(spec.output, spec.batch)) {
    CHECK(form_.in % form_.groups == 0 && form_.out % form_.groups == 0,
          "{}: groups must divide channels", spec.name);
    if (const auto* c = std::get_if<Convolution>(&spec.layer)) {
      has_bias_ = c->bias;
      relu_ = c->relu;
    } else {
      has_bias_ = std::get<Dense>(spec.layer).bias;
      relu_ = std::get<Dense>(spec.layer).relu;
    }
    plain_logits_ = spec.last && writes_plain_logits(spec);
    bias_.assign(target_.lanes(), 0.0f);
    const Windows windows = windows_of(spec, form_);
    source_ = form_.columns ? make_layout(spec.batch, form_.in * form_.taps, windows.sources)
                            : layout_of(spec.inputs[0], spec.batch);
    one_use_ = form_.dense && target_.lots == 1;
    if (image_columns()) {
      column_plan_ =
          ColumnPlan({.batch = spec.batch, .channels = form_.in, .window = window_of(spec)});
    }
    by_winograd_ = takes_winograd(spec, form_);
    if (by_winograd_) winograd_ = winograd_of(spec, std::get<Convolution>(spec.layer), spec.batch);
    forward_plan_ = plan_tiles(windows, target_.lot);
    forward_ = product_of(source_, target_, forward_plan_);
    if (spec.training) bind_backward(windows);
    plan_memory();
  }

  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    const Bf16* source = import(args);
    if (has_bias_) std::copy_n(spec_.bias, spec_.output.channels, bias_.begin());
    Finish finish{.bias_lanes = bias_.data(), .relu = relu_};
    finish.kind = plain_logits_        ? Finish::logits
                  : has_bias_ || relu_ ? Finish::bias
                  : spec_.training     ? Finish::norm_sums
                                       : Finish::plain;
    finish.partial = reinterpret_cast<double*>(args.scratch + partial_at_);
    finish.logits_out = reinterpret_cast<float*>(args.output);
    if (one_use_) {
      if (finish.kind == Finish::norm_sums) finish.kind = Finish::plain;
      run_dense_forward(forward_, source, spec_.weight, value(args.output), finish);
    } else if (by_winograd_) {
      float* weights = floats(args.scratch + pack_at_);
      make_winograd_weights(form_.shape, spec_.weight, false, weights);
      run_winograd(winograd_, source, weights, value(args.output), finish,
                   floats(args.scratch + turned_at_));
    } else {
      Bf16* pack = value(args.scratch + pack_at_);
      pack_forward(form_.shape, spec_.weight, pack);
      run_product(forward_, source, pack, value(args.output), finish);
    }
    if (plain_logits_) return;
    leave_no_sums(target_, args.output);
    if (finish.kind == Finish::norm_sums) {
      NormSums* trailer = target_.trailer(value(args.output));
      trailer->valid = 1;
      std::copy_n(finish.partial, 2 * target_.lanes(), trailer->sum());
    }
  }

  void backward(const BackwardArgs& args) override {
    Bf16* gradient = value(args.output_gradient);
    if (plain_logits_) {
      gradient = value(args.scratch + gradient_at_);
      import_plain(target_, reinterpret_cast<const float*>(args.output_gradient), gradient);
    }
    if (relu_ || has_bias_) {
      const auto* sums = reinterpret_cast<const double*>(args.taken);
      if (!sums) {
        auto* mine = reinterpret_cast<double*>(args.scratch + partial_at_);
        mask_and_sum(target_, relu_ ? value(args.output) : nullptr, gradient, mine);
        sums = mine;
      }
      if (has_bias_)
        for (int c = 0; c < spec_.output.channels; ++c) spec_.bias_gradient[c] = float(sums[c]);
    }
    const Bf16* source = form_.columns ? value(args.saved) : value(args.inputs[0]);
    const bool wanted =
        spec_.wants_input_gradient && !args.input_gradients.empty() && args.input_gradients[0];
    if (one_use_) {
      return run_dense_backward(
          {.source = source_, .target = target_, .taps = form_.shape.taps, .slots = slots_},
          {.source = source,
           .target_gradient = gradient,
           .stored = spec_.weight,
           .turned = value(args.scratch + turned_at_),
           .source_gradient = wanted ? value(args.input_gradients[0]) : nullptr,
           .weight_gradient = spec_.weight_gradient,
           .update = args.update});
    }
    std::byte* pack = args.scratch + pack_at_;
    if (wanted && by_winograd_)  // before they move
      make_winograd_weights(form_.shape, spec_.weight, true, floats(pack));
    else if (wanted)
      pack_backward(form_.shape, spec_.weight, value(pack));
    if (image_columns()) use_columns(source, nullptr);
    const double start = args.times ? now_s() : 0;
    const WeightGradient weight_gradient{
        .sums = args.update ? floats(args.scratch + moving_at_) : spec_.weight_gradient,
        .update = args.update,
        .stored = spec_.weight};
    if (by_winograd_)
      run_winograd_gradient(winograd_, source, gradient, floats(args.scratch + turned_at_),
                            weight_gradient);
    else
      run_weight_product(weights_, source, gradient, value(args.scratch + turned_at_),
                         weight_gradient);
    if (!args.update) clear_between_groups(form_, spec_.weight_gradient);
    const double middle = args.times ? now_s() : 0;
    if (args.times) args.times->weights_s += middle - start;
    if (!wanted) return;
    Finish finish{.kind = args.add_to_gradient ? Finish::add : Finish::plain};
    if (args.take) {
      finish.kind = Finish::gradient;
      finish.added = args.add_to_gradient;
      finish.partial = reinterpret_cast<double*>(args.take->sums);
      finish.value = args.take->relu ? source : nullptr;
      finish.factor = args.take->factor ? value(args.take->factor) : nullptr;
    }
    if (by_winograd_)
      run_winograd(winograd_backward(winograd_), gradient, floats(pack),
                   value(args.input_gradients[0]), finish, floats(args.scratch + turned_at_));
    else
      run_product(backward_, gradient, value(pack), value(args.input_gradients[0]), finish);
    if (args.times) args.times->data_s += now_s() - middle;
  }

 private:
  static float* floats(std::byte* p) { return reinterpret_cast<float*>(p); }

  TileProduct product_of(const Layout& source, const Layout& target, const TilePlan& plan) const {
    return {.source = source,
            .target = target,
            .taps = form_.shape.taps,
            .blocks = plan.blocks.data(),
            .runs = plan.runs.data(),
            .steps = plan.steps.data(),
            .joins = plan.joins.data(),
            .slots = slots_};
  }

  void bind_backward(const Windows& windows) {
    if (one_use_ || by_winograd_) return;
    if (spec_.wants_input_gradient && !form_.columns) {
      backward_plan_ = plan_tiles(inverse(windows), target_.lot);
      backward_ = product_of(target_, source_, backward_plan_);
    }
    weights_ = plan_weight_product(source_, target_, form_.shape, slide_of(spec_, form_), slots_);
  }

  void plan_memory() {
    Cutter scratch;
    const bool moves_weight = form_.groups == 1;  // zeros between groups are not to move
    if (by_winograd_)
      pack_at_ = scratch.take(winograd_weights_size(form_.shape) * sizeof(float));
    else if (!one_use_)
      pack_at_ = scratch.take(form_.shape.size() * sizeof(Bf16));
    partial_at_ =
        scratch.take(std::size_t(target_.partials()) * 2 * target_.lanes() * sizeof(double));
    const std::size_t imported = image_columns() ? column_plan_.padded_bytes()
                                 : form_.columns ? source_.bytes()
                                                 : 0;
    if (!spec_.training) imported_at_ = scratch.take(imported);
    if (image_columns())
      column_buffers_at_ = scratch.take(column_buffer_size(forward_) * sizeof(Bf16));
    if (by_winograd_) turned_at_ = scratch.take(winograd_floats() * sizeof(float));
    if (spec_.training) {
      const std::size_t turned = one_use_       ? dense_turned_size(target_)
                                 : by_winograd_ ? 0
                                                : weights_.turned_size();
      if (!by_winograd_) turned_at_ = scratch.take(turned * sizeof(Bf16));
      if (moves_weight && !one_use_) moving_at_ = scratch.take(form_.shape.size() * sizeof(float));
      if (plain_logits_) gradient_at_ = scratch.take(target_.bytes());
    }
    traits_ = {.reads_inputs = spec_.training && !form_.columns,
               .reads_output = spec_.training && relu_,
               .spoils_gradient = relu_,
               .adds_gradient = !one_use_,
               .updates_weight = moves_weight,
               .takes_sums = !one_use_ && !form_.columns,
               .sums_bytes = (has_bias_ || relu_) && !plain_logits_ ? sums_bytes(target_) : 0,
               .sums_behind_relu = relu_,
               .saved_bytes = spec_.training ? imported : 0,
               .scratch_bytes = scratch.size()};
  }

  std::size_t winograd_floats() const {
    const std::size_t forward = winograd_scratch_size(winograd_);
    if (!spec_.training) return forward;
    return std::max({forward, winograd_scratch_size(winograd_backward(winograd_)),
                     winograd_gradient_scratch_size(winograd_)});
  }

  bool image_columns() const { return form_.columns && !form_.dense; }

  // The source value: the input itself, or made from the network's plain input (of images, the
  // padded copy that columns are made of).
  const Bf16* import(const ForwardArgs& args) {
    if (!form_.columns) return value(args.inputs[0]);
    Bf16* to = value(spec_.training ? args.saved : args.scratch + imported_at_);
    const auto* plain = reinterpret_cast<const float*>(args.inputs[0]);
    if (image_columns()) {
      column_plan_.pad(plain, to);
      use_columns(to, value(args.scratch + column_buffers_at_));
    } else {
      import_plain(source_, plain, to);
    }
    return to;
  }

  void use_columns(const Bf16* padded, Bf16* buffers) {
    columns_ = column_plan_.over(padded);
    forward_.columns = weights_.columns = &columns_;
    forward_.column_buffers = buffers;
  }

  OpSpec spec_;
  ProductForm form_;
  int slots_;
  Layout source_, target_;
  bool has_bias_ = false, relu_ = false, plain_logits_ = false;
  bool one_use_ = false;  // dense and one lot of images: each weight is used once, hence not packed
  std::vector<float> bias_;
  TilePlan forward_plan_, backward_plan_;
  ColumnPlan column_plan_;
  Columns columns_;
  TileProduct forward_, backward_;
  WinogradProduct winograd_;
  bool by_winograd_ = false;
  WeightProduct weights_;
  std::size_t pack_at_ = 0, partial_at_ = 0, imported_at_ = 0, column_buffers_at_ = 0,
              turned_at_ = 0, moving_at_ = 0, gradient_at_ = 0;
  OpTraits traits_;
};

}  // namespace

std::unique_ptr<Op> make_product(const OpSpec& spec) { return std::make_unique<ProductOp>(spec); }

}  // namespace convoy::amx
