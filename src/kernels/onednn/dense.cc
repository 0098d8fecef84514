// Dense: an image's value is one run of floats whatever its shape, so a dense layer is a matrix
// product over that run; the columns of the stored weight follow the value's layout instead of
// PyTorch's CHW order.
#include <algorithm>
#include <vector>

#include "kernels/onednn/engine.h"
#include "kernels/onednn/layout.h"
#include "kernels/onednn/ops.h"

namespace convoy::onednn {
namespace {

using Forward = dnnl::inner_product_forward;
using BackwardData = dnnl::inner_product_backward_data;
using BackwardWeights = dnnl::inner_product_backward_weights;

// Values and stored weights are f32; with bf16 products what is multiplied is rounded on the way.
struct Geometry {
  Desc source, target, bias;
  Dims weight_dims;
  Memory::data_type factor;  // what is multiplied
};

Geometry geometry(const Dense& layer, const OpSpec& spec, Precision products, int batch) {
  const auto columns =
      std::int64_t(spec.first ? spec.inputs[0].count() : value_floats(spec.inputs[0]));
  const auto f32 = Memory::data_type::f32;
  return {Desc({batch, columns}, f32, Tag::nc), Desc({batch, layer.features}, f32, Tag::nc),
          vector_desc(layer.features), Dims{layer.features, columns},
          products == Precision::bf16 ? Memory::data_type::bf16 : f32};
}

Forward::primitive_desc forward_desc(const Geometry& g, const Desc& weights, const Dense& layer) {
  const auto kind = dnnl::prop_kind::forward_training;
  const Desc source = as_type(g.source, g.factor);
  const auto desc = layer.bias ? Forward::desc(kind, source, weights, g.bias, g.target)
                               : Forward::desc(kind, source, weights, g.target);
  return {desc, scratchpad_attr(layer.relu), engine()};
}

Desc stored_weights(const Dense& layer, const OpSpec& spec) {
  const Geometry g = geometry(layer, spec, Precision::f32, spec.tuning_batch);
  return forward_desc(g, Desc(g.weight_dims, g.factor, Tag::any), layer).weights_desc();
}

// Plain columns are in CHW order; the matrix's columns in the order of the value.
class DenseLayout : public StoredLayout {
 public:
  DenseLayout(const Shape& input, bool plain_input, std::int64_t rows, std::int64_t columns,
              Desc stored)
      : plain_columns_(input.count()),
        columns_(std::size_t(columns)),
        rows_(std::size_t(rows)),
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
  std::vector<std::size_t> place_;  // of each plain column in the matrix
};

class DenseOp : public Op {
 public:
  DenseOp(const Dense& layer, const OpSpec& spec, Precision products)
      : spec_(spec), relu_(layer.relu), outputs_(std::size_t(layer.features) * spec.batch) {
    const Geometry g = geometry(layer, spec, products, spec.batch);
    const Desc stored = stored_weights(layer, spec);
    // In f32 the stored layout serves all three passes; rounded weights are copies anyway, in the
    // layout each pass likes.
    const bool rounds = products == Precision::bf16;
    const Desc factor_weights = rounds ? Desc(g.weight_dims, g.factor, Tag::any) : stored;
    const auto forward = forward_desc(g, factor_weights, layer);
    forward_ = Pass(Forward(forward), forward.scratchpad_desc());
    forward_.input(DNNL_ARG_SRC, g.source, forward.src_desc());
    forward_.input(DNNL_ARG_WEIGHTS, stored, forward.weights_desc());
    if (layer.bias) forward_.input(DNNL_ARG_BIAS, g.bias, g.bias);
    forward_.output(DNNL_ARG_DST, g.target, forward.dst_desc());
    traits_.scratch_bytes = forward_.scratch_bytes();
    if (spec.training) prepare_backward(g, stored, factor_weights, forward, layer);
  }

  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    forward_.run({{DNNL_ARG_SRC, args.inputs[0]},
                  {DNNL_ARG_WEIGHTS, spec_.weight},
                  {DNNL_ARG_BIAS, spec_.bias},
                  {DNNL_ARG_DST, args.output}},
                 args.scratch);
  }

  void backward(const BackwardArgs& args) override {
    if (relu_)
      mask_gradient(reinterpret_cast<float*>(args.output_gradient),
                    reinterpret_cast<const float*>(args.output), outputs_);
    backward_weights_.run({{DNNL_ARG_SRC, args.inputs[0]},
                           {DNNL_ARG_DIFF_DST, args.output_gradient},
                           {DNNL_ARG_DIFF_WEIGHTS, spec_.weight_gradient},
                           {DNNL_ARG_DIFF_BIAS, spec_.bias_gradient}},
                          args.scratch);
    if (args.input_gradients[0] == nullptr) return;
    backward_data_.run({{DNNL_ARG_WEIGHTS, spec_.weight},
                        {DNNL_ARG_DIFF_DST, args.output_gradient},
                        {DNNL_ARG_DIFF_SRC, args.input_gradients[0]}},
                       args.scratch);
  }

 private:
  void prepare_backward(const Geometry& g, const Desc& stored, const Desc& factor_weights,
                        const Forward::primitive_desc& forward, const Dense& layer) {
    const Desc source = as_type(g.source, g.factor), target = as_type(g.target, g.factor);
    const auto weights_desc = layer.bias ? BackwardWeights::desc(source, stored, g.bias, target)
                                         : BackwardWeights::desc(source, stored, target);
    const BackwardWeights::primitive_desc weights(weights_desc, scratchpad_attr(), engine(),
                                                  forward);
    backward_weights_ = Pass(BackwardWeights(weights), weights.scratchpad_desc());
    backward_weights_.input(DNNL_ARG_SRC, g.source, weights.src_desc());
    backward_weights_.input(DNNL_ARG_DIFF_DST, g.target, weights.diff_dst_desc());
    backward_weights_.output(DNNL_ARG_DIFF_WEIGHTS, stored, weights.diff_weights_desc());
    if (layer.bias) backward_weights_.output(DNNL_ARG_DIFF_BIAS, g.bias, g.bias);

    const BackwardData::primitive_desc data(BackwardData::desc(g.source, factor_weights, target),
                                            scratchpad_attr(), engine(), forward);
    backward_data_ = Pass(BackwardData(data), data.scratchpad_desc());
    backward_data_.input(DNNL_ARG_WEIGHTS, stored, data.weights_desc());
    backward_data_.input(DNNL_ARG_DIFF_DST, g.target, data.diff_dst_desc());
    backward_data_.output(DNNL_ARG_DIFF_SRC, g.source, data.diff_src_desc());
    traits_.scratch_bytes = std::max(
        {traits_.scratch_bytes, backward_weights_.scratch_bytes(), backward_data_.scratch_bytes()});
    traits_.reads_inputs = true;
    traits_.reads_output = layer.relu;
    traits_.spoils_gradient = layer.relu;
  }

  OpSpec spec_;
  bool relu_;
  std::size_t outputs_;
  OpTraits traits_;
  Pass forward_, backward_data_, backward_weights_;
};

}  // namespace

std::unique_ptr<Op> make_dense(const Dense& layer, const OpSpec& spec, Precision products) {
  return std::make_unique<DenseOp>(layer, spec, products);
}

std::unique_ptr<StoredLayout> dense_layout(const Dense& layer, const OpSpec& spec) {
  const auto columns =
      std::int64_t(spec.first ? spec.inputs[0].count() : value_floats(spec.inputs[0]));
  return std::make_unique<DenseLayout>(spec.inputs[0], spec.first, layer.features, columns,
                                       stored_weights(layer, spec));
}

}  // namespace convoy::onednn
