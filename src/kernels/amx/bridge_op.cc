// Layers at the ends of a network that do not read the plain input or write plain logits
// themselves.
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/amx/ops.h"
#include "kernels/amx/rows.h"

namespace convoy::amx {

namespace {

class BridgeOp : public Op {
 public:
  BridgeOp(const OpSpec& spec, std::unique_ptr<Op> inner)
      : inner_(std::move(inner)),
        output_(layout_of(spec.output, spec.batch)),
        first_(spec.first),
        last_(spec.last) {
    for (const Shape& s : spec.inputs) inputs_.push_back(layout_of(s, spec.batch));
    const OpTraits& t = inner_->traits();
    Cutter saved, scratch;
    saved_at_ = saved.take(t.saved_bytes);
    scratch_at_ = scratch.take(t.scratch_bytes);
    if (first_) {
      for (const Layout& l : inputs_) inputs_at_.push_back(saved.take(l.bytes()));
    }
    if (last_) {
      output_at_ = saved.take(output_.bytes());
      gradient_at_ = scratch.take(output_.bytes());
    }
    traits_ = {.reads_inputs = t.reads_inputs && !first_,
               .reads_output = t.reads_output && !last_,
               .gradient_in_place = t.gradient_in_place && !last_,
               .spoils_gradient = t.spoils_gradient && !last_,
               .passes_gradient = t.passes_gradient && !last_,
               .updates_weight = t.updates_weight,
               .saved_bytes = saved.size(),
               .scratch_bytes = scratch.size()};
  }

  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    std::vector<const std::byte*> inputs(args.inputs.begin(), args.inputs.end());
    if (first_) {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        std::byte* to = args.saved + inputs_at_[i];
        import_plain(inputs_[i], reinterpret_cast<const float*>(args.inputs[i]), value(to));
        leave_no_sums(inputs_[i], to);
        inputs[i] = to;
      }
    }
    std::byte* output = last_ ? args.saved + output_at_ : args.output;
    inner_->forward({.inputs = inputs,
                     .output = output,
                     .saved = args.saved + saved_at_,
                     .scratch = args.scratch + scratch_at_,
                     .key = args.key});
    if (last_) export_plain(output_, value(output), reinterpret_cast<float*>(args.output));
  }

  void backward(const BackwardArgs& args) override {
    std::vector<const std::byte*> inputs(args.inputs.begin(), args.inputs.end());
    if (first_) {
      inputs.resize(inputs_.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = args.saved + inputs_at_[i];
    }
    std::byte* gradient = args.output_gradient;
    if (last_) {
      gradient = args.scratch + gradient_at_;
      import_plain(output_, reinterpret_cast<const float*>(args.output_gradient), value(gradient));
    }
    inner_->backward({.inputs = inputs,
                      .output = last_ ? args.saved + output_at_ : args.output,
                      .saved = args.saved + saved_at_,
                      .scratch = args.scratch + scratch_at_,
                      .output_gradient = gradient,
                      .input_gradients = args.input_gradients,
                      .update = args.update});
    if (!last_ || !inner_->traits().passes_gradient) return;
    for (std::size_t i = 0; i < args.input_gradients.size(); ++i) {
      if (!args.input_gradients[i]) continue;
      std::copy_n(gradient, inputs_[i].size() * sizeof(Bf16), args.input_gradients[i]);
    }
  }

 private:
  std::unique_ptr<Op> inner_;
  std::vector<Layout> inputs_;
  Layout output_;
  bool first_, last_;
  std::size_t saved_at_ = 0, scratch_at_ = 0, output_at_ = 0, gradient_at_ = 0;
  std::vector<std::size_t> inputs_at_;
  OpTraits traits_;
};

}  // namespace

std::unique_ptr<Op> make_bridge(const OpSpec& spec, std::unique_ptr<Op> inner) {
  return std::make_unique<BridgeOp>(spec, std::move(inner));
}

}  // namespace convoy::amx
