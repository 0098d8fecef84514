// Dense: an image's value is one run of floats whatever its shape, so a dense layer is a matrix
// product over that run; the columns of the stored weight follow the value's layout instead of
// PyTorch's CHW order.
#include <algorithm>
#include <vector>

#include "kernels/onednn/engine.h"
#include "kernels/onednn/layout.h"
#include "kernels/onednn/ops.h"
#include "kernels/onednn/product_op.h"

namespace convoy::onednn {
namespace {

using Forward = dnnl::inner_product_forward;
using BackwardData = dnnl::inner_product_backward_data;
using BackwardWeights = dnnl::inner_product_backward_weights;

struct Geometry {
  Desc source, target, bias;
  Dims weight_dims;
};

Geometry geometry(const Dense& layer, const OpSpec& spec, int batch) {
  const auto columns =
      std::int64_t(spec.first ? spec.inputs[0].count() : value_floats(spec.inputs[0]));
  const auto f32 = Memory::data_type::f32;
  return {Desc({batch, columns}, f32, Tag::nc), Desc({batch, layer.features}, f32, Tag::nc),
          vector_desc(layer.features), Dims{layer.features, columns}};
}

Forward::primitive_desc forward_desc(const Geometry& g, const Desc& weights, const Dense& layer) {
  const auto kind = dnnl::prop_kind::forward_training;
  const auto desc = layer.bias ? Forward::desc(kind, g.source, weights, g.bias, g.target)
                               : Forward::desc(kind, g.source, weights, g.target);
  return {desc, scratchpad_attr(layer.relu), engine()};
}

Desc stored_weights(const Dense& layer, const OpSpec& spec) {
  const Geometry g = geometry(layer, spec, spec.tuning_batch);
  return forward_desc(g, Desc(g.weight_dims, Memory::data_type::f32, Tag::any), layer)
      .weights_desc();
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

std::unique_ptr<Pass> forward_pass(const Geometry& g, const Desc& stored,
                                   const Forward::primitive_desc& desc, bool bias) {
  auto pass = std::make_unique<PrimitivePass>(Forward(desc), desc.scratchpad_desc());
  pass->input(DNNL_ARG_SRC, g.source, desc.src_desc());
  pass->input(DNNL_ARG_WEIGHTS, stored, desc.weights_desc());
  if (bias) pass->input(DNNL_ARG_BIAS, g.bias, g.bias);
  pass->output(DNNL_ARG_DST, g.target, desc.dst_desc());
  return pass;
}

std::unique_ptr<Pass> backward_weights_pass(const Geometry& g, const Desc& stored,
                                            const Forward::primitive_desc& forward, bool bias) {
  const auto wanted = bias ? BackwardWeights::desc(g.source, stored, g.bias, g.target)
                           : BackwardWeights::desc(g.source, stored, g.target);
  const BackwardWeights::primitive_desc desc(wanted, scratchpad_attr(), engine(), forward);
  auto pass = std::make_unique<PrimitivePass>(BackwardWeights(desc), desc.scratchpad_desc());
  pass->input(DNNL_ARG_SRC, g.source, desc.src_desc());
  pass->input(DNNL_ARG_DIFF_DST, g.target, desc.diff_dst_desc());
  pass->output(DNNL_ARG_DIFF_WEIGHTS, stored, desc.diff_weights_desc());
  if (bias) pass->output(DNNL_ARG_DIFF_BIAS, g.bias, g.bias);
  return pass;
}

std::unique_ptr<Pass> backward_data_pass(const Geometry& g, const Desc& stored,
                                         const Forward::primitive_desc& forward) {
  const BackwardData::primitive_desc desc(BackwardData::desc(g.source, stored, g.target),
                                          scratchpad_attr(), engine(), forward);
  auto pass = std::make_unique<PrimitivePass>(BackwardData(desc), desc.scratchpad_desc());
  pass->input(DNNL_ARG_WEIGHTS, stored, desc.weights_desc());
  pass->input(DNNL_ARG_DIFF_DST, g.target, desc.diff_dst_desc());
  pass->output(DNNL_ARG_DIFF_SRC, g.source, desc.diff_src_desc());
  return pass;
}

}  // namespace

std::unique_ptr<Op> make_dense(const Dense& layer, const OpSpec& spec) {
  const Geometry g = geometry(layer, spec, spec.batch);
  const Desc stored = stored_weights(layer, spec);
  const auto forward = forward_desc(g, stored, layer);  // the stored layout serves all three passes
  ProductPasses passes;
  passes.forward = forward_pass(g, stored, forward, layer.bias);
  if (spec.training)
    passes.backward_weights = backward_weights_pass(g, stored, forward, layer.bias);
  if (spec.training && spec.wants_input_gradient)
    passes.backward_data = backward_data_pass(g, stored, forward);
  return std::make_unique<ProductOp>(spec, layer.relu, std::move(passes));
}

std::unique_ptr<StoredLayout> dense_layout(const Dense& layer, const OpSpec& spec) {
  const auto columns =
      std::int64_t(spec.first ? spec.inputs[0].count() : value_floats(spec.inputs[0]));
  return std::make_unique<DenseLayout>(spec.inputs[0], spec.first, layer.features, columns,
                                       stored_weights(layer, spec));
}

}  // namespace convoy::onednn
