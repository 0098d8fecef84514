// Convolution and dense layers: what stands around the product itself (product_way.h), that is
// bias, ReLU, the network's plain input and logits, and sums for others.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernels/amx/columns.h"
#include "kernels/amx/ops.h"
#include "kernels/amx/product_way.h"
#include "kernels/amx/rows.h"

namespace convoy::amx {

namespace {

class ProductOp : public Op {
 public:
  explicit ProductOp(const OpSpec& spec)
      : spec_(spec), form_(product_form(spec)), target_(layout_of(spec.output, spec.batch)) {
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
    source_ = form_.columns ? make_layout(spec.batch, form_.in * form_.taps,
                                          form_.dense ? 1 : int(spec.output.area()))
                            : layout_of(spec.inputs[0], spec.batch);
    if (image_columns()) {
      column_plan_ =
          ColumnPlan({.batch = spec.batch, .channels = form_.in, .window = window_of(spec)});
    }
    way_ = choose_way({.spec = spec_,
                       .form = form_,
                       .source = source_,
                       .target = target_,
                       .columns = image_columns() ? &column_plan_ : nullptr});
    plan_memory();
  }

  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    const Bf16* source = import(args);
    if (has_bias_) std::copy_n(spec_.bias, spec_.output.channels, bias_.begin());
    Finish finish{.bias_lanes = bias_.data(), .relu = relu_};
    finish.kind = plain_logits_                            ? Finish::logits
                  : has_bias_ || relu_                     ? Finish::bias
                  : spec_.training && way_->finishes_all() ? Finish::norm_sums
                                                           : Finish::plain;
    finish.partial = reinterpret_cast<double*>(args.scratch + partial_at_);
    finish.logits_out = reinterpret_cast<float*>(args.output);
    way_->forward({.source = source,
                   .making = making(args.left),
                   .stored = spec_.weight,
                   .target = value(args.output),
                   .finish = finish,
                   .scratch = args.scratch});
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
    Finish finish{.kind = args.add_to_gradient ? Finish::add : Finish::plain};
    if (args.take) {
      finish.kind = Finish::gradient;
      finish.added = args.add_to_gradient;
      finish.partial = reinterpret_cast<double*>(args.take->sums);
      finish.factor = args.take->factor ? value(args.take->factor) : nullptr;
      if (args.take->relu && args.take->saved && finish.factor) {
        // Of a norm: scale and shift of each lane.
        finish.scale = reinterpret_cast<const float*>(args.take->saved);
        finish.shift = finish.scale + source_.lanes();
      } else if (args.take->relu) {
        finish.value = source;
      }
    }
    way_->backward({.source = source,
                    .target_gradient = gradient,
                    .stored = spec_.weight,
                    .weight_gradient = spec_.weight_gradient,
                    .update = args.update,
                    .source_gradient = wanted ? value(args.input_gradients[0]) : nullptr,
                    .finish = finish,
                    .making = making(args.left),
                    .scratch = args.scratch,
                    .times = args.times});
    clear_between_groups(form_, spec_.weight_gradient);
  }

 private:
  void plan_memory() {
    Cutter scratch;
    scratch.take(way_->scratch_bytes());  // in front
    partial_at_ = scratch.take(sums_bytes(target_));
    const std::size_t imported = image_columns() ? column_plan_.padded_bytes()
                                 : form_.columns ? source_.bytes()
                                                 : 0;
    if (!spec_.training) imported_at_ = scratch.take(imported);
    if (spec_.training && plain_logits_) gradient_at_ = scratch.take(target_.bytes());
    traits_ = {.reads_inputs = spec_.training && !form_.columns,
               .reads_output = spec_.training && relu_,
               .spoils_gradient = relu_,
               .adds_gradient = way_->finishes_all(),
               .updates_weight = form_.groups == 1,  // zeros between groups are not to move
               .takes_sums = way_->finishes_all() && !form_.columns,
               .sums_bytes = (has_bias_ || relu_) && !plain_logits_ ? sums_bytes(target_) : 0,
               .sums_behind_relu = relu_,
               .makes_input = spec_.training && way_->finishes_all() && !form_.columns,
               .makes_gradient = way_->finishes_all() && !has_bias_ && !relu_ && !plain_logits_,
               .saved_bytes = spec_.training ? imported : 0,
               .scratch_bytes = scratch.size()};
  }

  bool image_columns() const { return form_.columns && !form_.dense; }

  // The source value: the input itself, or made from the network's plain input (of images, the
  // padded copy that columns are made of).
  const Bf16* import(const ForwardArgs& args) {
    if (!form_.columns) return value(args.inputs[0]);
    Bf16* to = value(spec_.training ? args.saved : args.scratch + imported_at_);
    const auto* plain = reinterpret_cast<const float*>(args.inputs[0]);
    if (image_columns())
      column_plan_.pad(plain, to);
    else
      import_plain(source_, plain, to);
    return to;
  }

  OpSpec spec_;
  ProductForm form_;
  Layout source_, target_;
  bool has_bias_ = false, relu_ = false, plain_logits_ = false;
  std::vector<float> bias_;
  ColumnPlan column_plan_;
  std::unique_ptr<ProductWay> way_;
  std::size_t partial_at_ = 0, imported_at_ = 0, gradient_at_ = 0;
  OpTraits traits_;
};

}  // namespace

std::unique_ptr<Op> make_product(const OpSpec& spec) { return std::make_unique<ProductOp>(spec); }

}  // namespace convoy::amx
