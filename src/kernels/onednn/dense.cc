// Dense: an image's value is one run of floats whatever its shape, so a dense layer is a matrix product over that run; the
// columns of the stored weight follow the value's layout instead of PyTorch's CHW order.
#include <vector>

#include "kernels/onednn/engine.h"
#include "kernels/onednn/layout.h"
#include "kernels/onednn/ops.h"

namespace convoy::onednn {
namespace {

using Forward = dnnl::inner_product_forward;
using BackwardData = dnnl::inner_product_backward_data;
using BackwardWeights = dnnl::inner_product_backward_weights;

struct Geometry {
  Desc source, target, weights_any, bias;
};

Geometry geometry(const Dense& layer, const OpSpec& spec, int batch) {
  const auto columns = std::int64_t(spec.first ? spec.inputs[0].count() : value_floats(spec.inputs[0]));
  const auto f32 = Memory::data_type::f32;
  return {Desc({batch, columns}, f32, Tag::nc), Desc({batch, layer.features}, f32, Tag::nc),
          Desc({layer.features, columns}, f32, Tag::any), vector_desc(layer.features)};
}

dnnl::primitive_attr forward_attr(bool relu) {
  dnnl::primitive_attr attr = scratchpad_attr();
  if (relu) {
    dnnl::post_ops post;
    post.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    attr.set_post_ops(post);
  }
  return attr;
}

Forward::primitive_desc forward_desc(const Geometry& g, const Desc& weights, const Dense& layer) {
  const auto kind = dnnl::prop_kind::forward_training;
  const auto desc = layer.bias ? Forward::desc(kind, g.source, weights, g.bias, g.target)
                               : Forward::desc(kind, g.source, weights, g.target);
  return {desc, forward_attr(layer.relu), engine()};
}

Desc stored_weights(const Dense& layer, const OpSpec& spec) {
  const Geometry g = geometry(layer, spec, spec.tuning_batch);
  return forward_desc(g, g.weights_any, layer).weights_desc();
}

// Plain columns are in CHW order; the matrix's columns in the order of the value.
class DenseLayout : public StoredLayout {
 public:
  DenseLayout(const Shape& input, bool plain_input, std::int64_t rows, std::int64_t columns, Desc stored)
      : plain_columns_(input.count()), columns_(std::size_t(columns)), rows_(std::size_t(rows)),
        matrix_(Desc({rows, columns}, Memory::data_type::f32, Tag::ab), std::move(stored)),
        place_(input.count()) {
    const std::size_t area = input.area();
    const std::size_t lanes = std::size_t(block());
    for (std::size_t i = 0; i < place_.size(); ++i) {
      const std::size_t channel = i / area, position = i % area;
      const bool blocked = !plain_input && is_blocked(input);
      place_[i] = blocked ? (channel / lanes * area + position) * lanes + channel % lanes : i;
    }
  }

  std::size_t stored_count() const override { return matrix_.stored_count(); }

  void to_plain(const float* stored, float* plain) const override {
    std::vector<float> matrix(rows_ * columns_);
    matrix_.to_plain(stored, matrix.data());
    for (std::size_t row = 0; row < rows_; ++row)
      for (std::size_t i = 0; i < plain_columns_; ++i)
        plain[row * plain_columns_ + i] = matrix[row * columns_ + place_[i]];
  }

  void from_plain(const float* plain, float* stored) const override {
    std::vector<float> matrix(rows_ * columns_);
    for (std::size_t row = 0; row < rows_; ++row)
      for (std::size_t i = 0; i < plain_columns_; ++i)
        matrix[row * columns_ + place_[i]] = plain[row * plain_columns_ + i];
    matrix_.from_plain(matrix.data(), stored);
  }

 private:
  std::size_t plain_columns_, columns_, rows_;
  DescLayout matrix_;
  std::vector<std::size_t> place_;   // of each plain column in the matrix
};

class DenseOp : public Op {
 public:
  DenseOp(const Dense& layer, const OpSpec& spec)
      : spec_(spec), relu_(layer.relu), outputs_(std::size_t(layer.features) * spec.batch) {
    const Geometry g = geometry(layer, spec, spec.batch);
    const Desc stored = stored_weights(layer, spec);
    const auto forward = forward_desc(g, stored, layer);
    forward_ = Call(Forward(forward));
    describe(forward_, DNNL_ARG_SRC, g.source, DNNL_ARG_WEIGHTS, stored, DNNL_ARG_DST, g.target,
             forward.scratchpad_desc());
    if (layer.bias) forward_.argument(DNNL_ARG_BIAS, g.bias);
    if (!spec.training) return;

    const BackwardWeights::desc weights_desc =
        layer.bias ? BackwardWeights::desc(g.source, stored, g.bias, g.target)
                   : BackwardWeights::desc(g.source, stored, g.target);
    const BackwardWeights::primitive_desc weights(weights_desc, scratchpad_attr(), engine(), forward);
    backward_weights_ = Call(BackwardWeights(weights));
    describe(backward_weights_, DNNL_ARG_SRC, g.source, DNNL_ARG_DIFF_WEIGHTS, stored, DNNL_ARG_DIFF_DST,
             g.target, weights.scratchpad_desc());
    if (layer.bias) backward_weights_.argument(DNNL_ARG_DIFF_BIAS, g.bias);

    const BackwardData::primitive_desc data(BackwardData::desc(g.source, stored, g.target), scratchpad_attr(),
                                            engine(), forward);
    backward_data_ = Call(BackwardData(data));
    describe(backward_data_, DNNL_ARG_DIFF_SRC, g.source, DNNL_ARG_WEIGHTS, stored, DNNL_ARG_DIFF_DST, g.target,
             data.scratchpad_desc());
    traits_.reads_inputs = true;
    traits_.reads_output = layer.relu;
    traits_.spoils_gradient = layer.relu;
  }

  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    forward_.point(DNNL_ARG_SRC, args.inputs[0]);
    forward_.point(DNNL_ARG_WEIGHTS, spec_.weight);
    forward_.point(DNNL_ARG_BIAS, spec_.bias);
    forward_.point(DNNL_ARG_DST, args.output);
    forward_.point(DNNL_ARG_SCRATCHPAD, args.scratch);
    forward_.execute();
  }

  void backward(const BackwardArgs& args) override {
    if (relu_)
      mask_gradient(reinterpret_cast<float*>(args.output_gradient),
                    reinterpret_cast<const float*>(args.output), outputs_);
    backward_weights_.point(DNNL_ARG_SRC, args.inputs[0]);
    backward_weights_.point(DNNL_ARG_DIFF_WEIGHTS, spec_.weight_gradient);
    backward_weights_.point(DNNL_ARG_DIFF_BIAS, spec_.bias_gradient);
    backward_weights_.point(DNNL_ARG_DIFF_DST, args.output_gradient);
    backward_weights_.point(DNNL_ARG_SCRATCHPAD, args.scratch);
    backward_weights_.execute();
    if (args.input_gradients[0] == nullptr) return;
    backward_data_.point(DNNL_ARG_DIFF_SRC, args.input_gradients[0]);
    backward_data_.point(DNNL_ARG_WEIGHTS, spec_.weight);
    backward_data_.point(DNNL_ARG_DIFF_DST, args.output_gradient);
    backward_data_.point(DNNL_ARG_SCRATCHPAD, args.scratch);
    backward_data_.execute();
  }

 private:
  void describe(Call& call, int source_name, const Desc& source, int weights_name, const Desc& weights,
                int target_name, const Desc& target, const Desc& scratchpad) {
    call.argument(source_name, source);
    call.argument(weights_name, weights);
    call.argument(target_name, target);
    call.argument(DNNL_ARG_SCRATCHPAD, scratchpad);
    traits_.scratch_bytes = std::max(traits_.scratch_bytes, scratchpad.get_size());
  }

  OpSpec spec_;
  bool relu_;
  std::size_t outputs_;
  OpTraits traits_;
  Call forward_, backward_data_, backward_weights_;
};

}  // namespace

std::unique_ptr<Op> make_dense(const Dense& layer, const OpSpec& spec) {
  return std::make_unique<DenseOp>(layer, spec);
}

std::unique_ptr<StoredLayout> dense_layout(const Dense& layer, const OpSpec& spec) {
  const auto columns = std::int64_t(spec.first ? spec.inputs[0].count() : value_floats(spec.inputs[0]));
  return std::make_unique<DenseLayout>(spec.inputs[0], spec.first, layer.features, columns,
                                       stored_weights(layer, spec));
}

}  // namespace convoy::onednn
