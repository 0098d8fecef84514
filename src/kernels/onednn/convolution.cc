// Convolution: direct or Winograd, each pass chosen by the tuner. The weights lie in the arena in the layout in which
// forward reads and backward-weights writes them; backward-data of the direct kind reads another one, made on the way.
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "kernels/onednn/engine.h"
#include "kernels/onednn/layout.h"
#include "kernels/onednn/ops.h"
#include "kernels/parallel.h"

namespace convoy::onednn {
namespace {

using Algorithm = dnnl::algorithm;
using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

// The sizes of one convolution as oneDNN wants them.
struct Geometry {
  Desc source, target, weights_any, weights_plain, bias;
  Dims strides, padding_before, padding_after;
  bool has_bias;
};

// oneDNN insists that sizes, kernel and padding agree exactly; the output may be smaller than the input allows.
std::int64_t padding_after(int input, int output, const Convolution& layer) {
  const int natural = (input + 2 * layer.padding - layer.kernel) / layer.stride + 1;
  if (natural == output) return layer.padding;
  return (output - 1) * layer.stride + layer.kernel - input - layer.padding;
}

Geometry geometry(const Convolution& layer, const OpSpec& spec, int batch) {
  const Shape& in = spec.inputs[0];
  const Shape& out = spec.output;
  Geometry g;
  // Few input channels (images) are read as plain planes, which oneDNN has kernels for.
  g.source = spec.first ? plain_images_desc(in, batch) : value_desc(in, batch);
  g.target = value_desc(out, batch);
  const Dims dims = layer.groups == 1
                        ? Dims{out.channels, in.channels, layer.kernel, layer.kernel}
                        : Dims{layer.groups, out.channels / layer.groups, in.channels / layer.groups,
                               layer.kernel, layer.kernel};
  g.weights_any = Desc(dims, Memory::data_type::f32, Tag::any);
  g.weights_plain = Desc(dims, Memory::data_type::f32, layer.groups == 1 ? Tag::oihw : Tag::goihw);
  g.bias = vector_desc(out.channels);
  g.strides = {layer.stride, layer.stride};
  g.padding_before = {layer.padding, layer.padding};
  g.padding_after = {padding_after(in.height, out.height, layer), padding_after(in.width, out.width, layer)};
  g.has_bias = layer.bias;
  return g;
}

dnnl::primitive_attr forward_attr(bool relu) {
  dnnl::primitive_attr attr = scratchpad_attr();
  if (relu) {
    dnnl::post_ops post;
    post.append_eltwise(1.0f, Algorithm::eltwise_relu, 0.0f, 0.0f);
    attr.set_post_ops(post);
  }
  return attr;
}

Forward::primitive_desc forward_desc(const Geometry& g, const Desc& weights, Algorithm algorithm, bool training,
                                     bool relu) {
  const auto kind = training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const Forward::desc desc =
      g.has_bias ? Forward::desc(kind, algorithm, g.source, weights, g.bias, g.target, g.strides,
                                 g.padding_before, g.padding_after)
                 : Forward::desc(kind, algorithm, g.source, weights, g.target, g.strides, g.padding_before,
                                 g.padding_after);
  return {desc, forward_attr(relu), engine()};
}

// The stored layout: what direct forward likes, as long as backward-weights likes it too.
Desc stored_weights(const Geometry& g) {
  return forward_desc(g, g.weights_any, Algorithm::convolution_direct, true, false).weights_desc();
}

// A pass of the convolution: its primitive, and the reorder of the weights if it reads or writes another layout.
struct Pass {
  Call call;
  Desc weights;
  std::size_t scratch_bytes = 0;
};

// Whether oneDNN has a fast kernel for it, and not only its plain one.
template <typename PrimitiveDesc>
bool is_fast(const PrimitiveDesc& desc) {
  return std::strstr(desc.impl_info_str(), "ref") == nullptr;
}

Pass forward_pass(const Geometry& g, const Desc& stored, Algorithm algorithm, bool training, bool relu) {
  auto desc = forward_desc(g, stored, algorithm, training, relu);
  if (!is_fast(desc)) desc = forward_desc(g, g.weights_any, algorithm, training, relu);
  Pass pass{Call(Forward(desc)), desc.weights_desc(), desc.scratchpad_desc().get_size()};
  pass.call.argument(DNNL_ARG_SRC, desc.src_desc());
  pass.call.argument(DNNL_ARG_WEIGHTS, desc.weights_desc());
  if (g.has_bias) pass.call.argument(DNNL_ARG_BIAS, g.bias);
  pass.call.argument(DNNL_ARG_DST, desc.dst_desc());
  pass.call.argument(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
  return pass;
}

Pass backward_data_pass(const Geometry& g, const Desc& stored, Algorithm algorithm) {
  const auto hint = forward_desc(g, g.weights_any, algorithm, true, false);
  const auto make = [&](const Desc& weights) {
    return BackwardData::primitive_desc(BackwardData::desc(algorithm, g.source, weights, g.target, g.strides,
                                                           g.padding_before, g.padding_after),
                                        scratchpad_attr(), engine(), hint);
  };
  auto desc = make(g.weights_any);
  if (algorithm != Algorithm::convolution_direct && !same(desc.weights_desc(), stored)) desc = make(stored);
  Pass pass{Call(BackwardData(desc)), desc.weights_desc(), desc.scratchpad_desc().get_size()};
  pass.call.argument(DNNL_ARG_DIFF_SRC, desc.diff_src_desc());
  pass.call.argument(DNNL_ARG_WEIGHTS, desc.weights_desc());
  pass.call.argument(DNNL_ARG_DIFF_DST, desc.diff_dst_desc());
  pass.call.argument(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
  return pass;
}

Pass backward_weights_pass(const Geometry& g, const Desc& stored, Algorithm algorithm) {
  const auto hint = forward_desc(g, g.weights_any, algorithm, true, false);
  const auto make = [&](const Desc& weights) {
    const auto desc =
        g.has_bias ? BackwardWeights::desc(algorithm, g.source, weights, g.bias, g.target, g.strides,
                                           g.padding_before, g.padding_after)
                   : BackwardWeights::desc(algorithm, g.source, weights, g.target, g.strides,
                                           g.padding_before, g.padding_after);
    return BackwardWeights::primitive_desc(desc, scratchpad_attr(), engine(), hint);
  };
  auto desc = make(g.weights_any);
  if (!same(desc.diff_weights_desc(), stored)) {
    auto wanted = make(stored);
    if (is_fast(wanted)) desc = wanted;
  }
  Pass pass{Call(BackwardWeights(desc)), desc.diff_weights_desc(), desc.scratchpad_desc().get_size()};
  pass.call.argument(DNNL_ARG_SRC, desc.src_desc());
  pass.call.argument(DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc());
  if (g.has_bias) pass.call.argument(DNNL_ARG_DIFF_BIAS, g.bias);
  pass.call.argument(DNNL_ARG_DIFF_DST, desc.diff_dst_desc());
  pass.call.argument(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
  return pass;
}

constexpr const char* kDirect = "direct";
constexpr const char* kWinograd = "winograd";

std::string tuner_key(const char* pass, const Convolution& layer, const OpSpec& spec) {
  return fmt::format("conv {} n{} {} -> {} k{} s{} p{} g{} t{}{}", pass, spec.tuning_batch,
                     spec.inputs[0].to_string(), spec.output.to_string(), layer.kernel, layer.stride,
                     layer.padding, layer.groups, threads(), spec.first ? " images" : "");
}

// Memory on which passes of one convolution are timed; made when the first one is.
class TimingMemory {
 public:
  double time(Pass& pass, const Desc& source, const Desc& target) {
    const std::size_t weights = pass.weights.get_size();
    for (int name : {DNNL_ARG_SRC, DNNL_ARG_DIFF_SRC}) pass.call.point(name, room(source_, source.get_size()));
    for (int name : {DNNL_ARG_DST, DNNL_ARG_DIFF_DST}) pass.call.point(name, room(target_, target.get_size()));
    for (int name : {DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_WEIGHTS}) pass.call.point(name, room(weights_, weights));
    for (int name : {DNNL_ARG_BIAS, DNNL_ARG_DIFF_BIAS}) pass.call.point(name, room(bias_, weights));
    pass.call.point(DNNL_ARG_SCRATCHPAD, room(scratch_, pass.scratch_bytes));
    pass.call.execute();
    const double start = now_s();
    pass.call.execute();
    return now_s() - start;
  }

 private:
  static void* room(std::vector<float>& memory, std::size_t bytes) {
    const std::size_t floats = bytes / sizeof(float) + 16;
    if (memory.size() < floats) memory.assign(floats, 0.5f);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return reinterpret_cast<void*>((address + 63) / 64 * 64);
  }

  std::vector<float> source_, target_, weights_, bias_, scratch_;
};

// `make(algorithm)` builds the pass; the tuner decides which one stays.
template <typename Make>
Pass tuned(const char* name, const Convolution& layer, const OpSpec& spec, Tuner& tuner, Make&& make) {
  // oneDNN 2.6's Winograd is wrong in backward-data where the padding after differs from that before.
  const bool even_padding = padding_after(spec.inputs[0].height, spec.output.height, layer) == layer.padding &&
                            padding_after(spec.inputs[0].width, spec.output.width, layer) == layer.padding;
  const bool winograd_fits =
      layer.kernel == 3 && layer.stride == 1 && layer.groups == 1 && !spec.first && even_padding;
  if (!winograd_fits) return make(Algorithm::convolution_direct);
  const std::string key = tuner_key(name, layer, spec);
  if (spec.batch != spec.tuning_batch) {
    if (tuner.recall(key, kDirect) != kWinograd) return make(Algorithm::convolution_direct);
  }
  try {
    Pass winograd = make(Algorithm::convolution_winograd);
    if (spec.batch != spec.tuning_batch) return winograd;
    Pass direct = make(Algorithm::convolution_direct);
    const Desc source = value_desc(spec.inputs[0], spec.batch);
    const Desc target = value_desc(spec.output, spec.batch);
    TimingMemory memory;
    const Tuner::Candidate candidates[] = {{kDirect, [&] { return memory.time(direct, source, target); }},
                                           {kWinograd, [&] { return memory.time(winograd, source, target); }}};
    return tuner.choose(key, candidates) == kWinograd ? std::move(winograd) : std::move(direct);
  } catch (const dnnl::error&) {  // oneDNN has no Winograd for these sizes
    return make(Algorithm::convolution_direct);
  }
}

class ConvolutionOp : public Op {
 public:
  ConvolutionOp(const Convolution& layer, const OpSpec& spec, Tuner& tuner)
      : spec_(spec), relu_(layer.relu), output_floats_(value_floats(spec.output) * spec.batch) {
    const Geometry g = geometry(layer, spec, spec.batch);
    const Desc stored = stored_weights(geometry(layer, spec, spec.tuning_batch));
    forward_ = tuned("forward", layer, spec, tuner, [&](Algorithm algorithm) {
      return forward_pass(g, stored, algorithm, spec.training, layer.relu);
    });
    traits_.reads_inputs = true;
    traits_.reads_output = layer.relu;
    traits_.spoils_gradient = layer.relu;
    note(forward_, stored, to_forward_);
    if (!spec.training) return;
    backward_weights_ = tuned("backward-weights", layer, spec, tuner, [&](Algorithm algorithm) {
      return backward_weights_pass(g, stored, algorithm);
    });
    if (!same(backward_weights_.weights, stored)) from_weights_ = make_reorder(backward_weights_.weights, stored);
    reserve(backward_weights_, bool(from_weights_));
    if (!spec.wants_input_gradient) return;
    backward_data_ = tuned("backward-data", layer, spec, tuner, [&](Algorithm algorithm) {
      return backward_data_pass(g, stored, algorithm);
    });
    note(backward_data_, stored, to_backward_data_);
  }

  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    Call& call = forward_.call;
    call.point(DNNL_ARG_SRC, args.inputs[0]);
    call.point(DNNL_ARG_WEIGHTS, weights_for(forward_, to_forward_, args.scratch));
    call.point(DNNL_ARG_BIAS, spec_.bias);
    call.point(DNNL_ARG_DST, args.output);
    call.point(DNNL_ARG_SCRATCHPAD, args.scratch);
    call.execute();
  }

  void backward(const BackwardArgs& args) override {
    if (relu_)
      mask_gradient(reinterpret_cast<float*>(args.output_gradient),
                    reinterpret_cast<const float*>(args.output), output_floats_);
    write_weight_gradient(args);
    if (args.input_gradients[0] == nullptr) return;
    Call& call = backward_data_.call;
    call.point(DNNL_ARG_DIFF_SRC, args.input_gradients[0]);
    call.point(DNNL_ARG_WEIGHTS, weights_for(backward_data_, to_backward_data_, args.scratch));
    call.point(DNNL_ARG_DIFF_DST, args.output_gradient);
    call.point(DNNL_ARG_SCRATCHPAD, args.scratch);
    call.execute();
  }

 private:
  static std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  // Scratch holds the primitive's scratchpad, then the weights in the pass's own layout.
  void reserve(const Pass& pass, bool reordered) {
    const std::size_t bytes =
        aligned(pass.scratch_bytes) + (reordered ? aligned(pass.weights.get_size()) : 0);
    traits_.scratch_bytes = std::max(traits_.scratch_bytes, bytes);
  }

  void note(const Pass& pass, const Desc& stored, Call& reorder) {
    if (!same(pass.weights, stored)) reorder = make_reorder(stored, pass.weights);
    reserve(pass, bool(reorder));
  }

  const void* weights_for(const Pass& pass, Call& reorder, std::byte* scratch) {
    if (!reorder) return spec_.weight;
    std::byte* copy = scratch + aligned(pass.scratch_bytes);
    reorder.point(DNNL_ARG_FROM, spec_.weight);
    reorder.point(DNNL_ARG_TO, copy);
    reorder.execute();
    return copy;
  }

  void write_weight_gradient(const BackwardArgs& args) {
    std::byte* copy = args.scratch + aligned(backward_weights_.scratch_bytes);
    Call& call = backward_weights_.call;
    call.point(DNNL_ARG_SRC, args.inputs[0]);
    call.point(DNNL_ARG_DIFF_WEIGHTS, from_weights_ ? static_cast<void*>(copy) : spec_.weight_gradient);
    call.point(DNNL_ARG_DIFF_BIAS, spec_.bias_gradient);
    call.point(DNNL_ARG_DIFF_DST, args.output_gradient);
    call.point(DNNL_ARG_SCRATCHPAD, args.scratch);
    call.execute();
    if (!from_weights_) return;
    from_weights_.point(DNNL_ARG_FROM, copy);
    from_weights_.point(DNNL_ARG_TO, spec_.weight_gradient);
    from_weights_.execute();
  }

  OpSpec spec_;
  bool relu_;
  std::size_t output_floats_;
  OpTraits traits_;
  Pass forward_, backward_data_, backward_weights_;
  Call to_forward_, to_backward_data_, from_weights_;
};

}  // namespace

std::unique_ptr<Op> make_convolution(const Convolution& layer, const OpSpec& spec, Tuner& tuner) {
  return std::make_unique<ConvolutionOp>(layer, spec, tuner);
}

std::unique_ptr<StoredLayout> convolution_layout(const Convolution& layer, const OpSpec& spec) {
  const Geometry g = geometry(layer, spec, spec.tuning_batch);
  return std::make_unique<DescLayout>(g.weights_plain, stored_weights(g));
}

}  // namespace convoy::onednn
