// Convolution: direct or Winograd, each pass chosen by the tuner. The weights lie in the arena in
// the layout in which forward reads and backward-weights writes them; backward-data of the direct
// kind reads another one, made on the way, as are values where only other layouts have fast
// kernels.
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "kernels/onednn/engine.h"
#include "kernels/onednn/layout.h"
#include "kernels/onednn/ops.h"
#include "kernels/onednn/product_op.h"
#include "kernels/parallel.h"

namespace convoy::onednn {
namespace {

using Algorithm = dnnl::algorithm;
using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

// The sizes of one convolution as oneDNN wants them.
struct Geometry {
  Desc source, target, weights_plain, bias;
  Dims weight_dims, strides, padding_before, padding_after;
  bool has_bias;

  Desc weights_any() const { return Desc(weight_dims, Memory::data_type::f32, Tag::any); }
};

// oneDNN insists that sizes, kernel and padding agree exactly; the output may be smaller than the
// input allows.
std::int64_t padding_after(int input, int output, const Convolution& layer) {
  const int natural = (input + 2 * layer.padding - layer.kernel) / layer.stride + 1;
  if (natural == output) return layer.padding;
  return (output - 1) * layer.stride + layer.kernel - input - layer.padding;
}

Geometry geometry(const Convolution& layer, const OpSpec& spec, int batch) {
  const Shape& in = spec.inputs[0];
  const Shape& out = spec.output;
  Geometry g;
  // Few input channels (images) are read as plain planes, which oneDNN has most kernels for.
  g.source = spec.first ? plain_images_desc(in, batch) : value_desc(in, batch);
  g.target = value_desc(out, batch);
  g.weight_dims = layer.groups == 1 ? Dims{out.channels, in.channels, layer.kernel, layer.kernel}
                                    : Dims{layer.groups, out.channels / layer.groups,
                                           in.channels / layer.groups, layer.kernel, layer.kernel};
  g.weights_plain =
      Desc(g.weight_dims, Memory::data_type::f32, layer.groups == 1 ? Tag::oihw : Tag::goihw);
  g.bias = vector_desc(out.channels);
  g.strides = {layer.stride, layer.stride};
  g.padding_before = {layer.padding, layer.padding};
  g.padding_after = {padding_after(in.height, out.height, layer),
                     padding_after(in.width, out.width, layer)};
  g.has_bias = layer.bias;
  return g;
}

Forward::primitive_desc forward_desc(const Geometry& g, const Desc& weights, Algorithm algorithm,
                                     bool training, bool relu) {
  const auto kind =
      training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const Forward::desc desc =
      g.has_bias ? Forward::desc(kind, algorithm, g.source, weights, g.bias, g.target, g.strides,
                                 g.padding_before, g.padding_after)
                 : Forward::desc(kind, algorithm, g.source, weights, g.target, g.strides,
                                 g.padding_before, g.padding_after);
  return {desc, scratchpad_attr(relu), engine()};
}

// The stored layout is the one that direct forward likes.
Desc stored_weights(const Geometry& g) {
  return forward_desc(g, g.weights_any(), Algorithm::convolution_direct, true, false)
      .weights_desc();
}

// Whether oneDNN has a fast kernel for it, and not only its plain one.
template <typename PrimitiveDesc>
bool is_fast(const PrimitiveDesc& desc) {
  return std::strstr(desc.impl_info_str(), "ref") == nullptr;
}

// The first fast one among make(geometry, weights): with values as they lie and weights as stored,
// or as it likes them; then with values as it likes them, or plain. For some sizes (images with few
// channels, on a CPU without AVX-512) only the last have a fast kernel; the others are hundreds of
// times slower.
template <typename Make>
auto first_fast(const Geometry& g, const Desc& stored, Make&& make) {
  Geometry plain = g, free = g;
  plain.source = Desc(g.source.dims(), Memory::data_type::f32, Tag::nchw);
  plain.target = Desc(g.target.dims(), Memory::data_type::f32, Tag::nchw);
  free.source = Desc(g.source.dims(), Memory::data_type::f32, Tag::any);
  free.target = Desc(g.target.dims(), Memory::data_type::f32, Tag::any);
  const auto usual = make(g, stored);
  if (is_fast(usual)) return usual;
  for (const Geometry& form : {g, free, plain})
    if (const auto other = make(form, g.weights_any()); is_fast(other)) return other;
  return usual;
}

Pass forward_pass(const Geometry& g, const Desc& stored, Algorithm algorithm, bool training,
                  bool relu) {
  const auto desc = first_fast(g, stored, [&](const Geometry& form, const Desc& weights) {
    return forward_desc(form, weights, algorithm, training, relu);
  });
  Pass pass(Forward(desc), desc.scratchpad_desc());
  pass.input(DNNL_ARG_SRC, g.source, desc.src_desc());
  pass.input(DNNL_ARG_WEIGHTS, stored, desc.weights_desc());
  if (g.has_bias) pass.input(DNNL_ARG_BIAS, g.bias, g.bias);
  pass.output(DNNL_ARG_DST, g.target, desc.dst_desc());
  return pass;
}

Pass backward_data_pass(const Geometry& g, const Desc& stored, Algorithm algorithm) {
  const auto make = [&](const Geometry& form, const Desc& weights) {
    return BackwardData::primitive_desc(
        BackwardData::desc(algorithm, form.source, weights, form.target, g.strides,
                           g.padding_before, g.padding_after),
        scratchpad_attr(), engine(), forward_desc(form, g.weights_any(), algorithm, true, false));
  };
  // The direct kind has no kernel of its own for stored weights, Winograd's has.
  const bool direct = algorithm == Algorithm::convolution_direct;
  const auto desc = first_fast(g, direct ? g.weights_any() : stored, make);
  Pass pass(BackwardData(desc), desc.scratchpad_desc());
  pass.input(DNNL_ARG_WEIGHTS, stored, desc.weights_desc());
  pass.input(DNNL_ARG_DIFF_DST, g.target, desc.diff_dst_desc());
  pass.output(DNNL_ARG_DIFF_SRC, g.source, desc.diff_src_desc());
  return pass;
}

Pass backward_weights_pass(const Geometry& g, const Desc& stored, Algorithm algorithm) {
  const auto make = [&](const Geometry& form, const Desc& weights) {
    const auto desc =
        g.has_bias ? BackwardWeights::desc(algorithm, form.source, weights, g.bias, form.target,
                                           g.strides, g.padding_before, g.padding_after)
                   : BackwardWeights::desc(algorithm, form.source, weights, form.target, g.strides,
                                           g.padding_before, g.padding_after);
    return BackwardWeights::primitive_desc(
        desc, scratchpad_attr(), engine(),
        forward_desc(form, g.weights_any(), algorithm, true, false));
  };
  const auto desc = first_fast(g, stored, make);
  Pass pass(BackwardWeights(desc), desc.scratchpad_desc());
  pass.input(DNNL_ARG_SRC, g.source, desc.src_desc());
  pass.input(DNNL_ARG_DIFF_DST, g.target, desc.diff_dst_desc());
  pass.output(DNNL_ARG_DIFF_WEIGHTS, stored, desc.diff_weights_desc());
  if (g.has_bias) pass.output(DNNL_ARG_DIFF_BIAS, g.bias, g.bias);
  return pass;
}

constexpr const char* kDirect = "direct";
constexpr const char* kWinograd = "winograd";

std::string tuner_key(const char* pass, const Convolution& layer, const OpSpec& spec) {
  return fmt::format("conv {} n{} {} -> {} k{} s{} p{} g{} t{}{}", pass, spec.tuning_batch,
                     spec.inputs[0].to_string(), spec.output.to_string(), layer.kernel,
                     layer.stride, layer.padding, layer.groups, threads(),
                     spec.first ? " images" : "");
}

// Memory on which passes of one convolution are timed; made when the first one is.
class TimingMemory {
 public:
  TimingMemory(const Desc& source, const Desc& target, const Desc& weights)
      : source_bytes_(source.get_size()),
        target_bytes_(target.get_size()),
        weights_bytes_(weights.get_size()) {}

  double time(Pass& pass) {
    const void* source = room(source_, source_bytes_);
    const void* target = room(target_, target_bytes_);
    const void* weights = room(weights_, weights_bytes_);
    const void* bias = room(bias_, weights_bytes_);
    auto* scratch = static_cast<std::byte*>(room(scratch_, pass.scratch_bytes()));
    const auto run = [&] {
      pass.run({{DNNL_ARG_SRC, source},
                {DNNL_ARG_DIFF_SRC, source},
                {DNNL_ARG_DST, target},
                {DNNL_ARG_DIFF_DST, target},
                {DNNL_ARG_WEIGHTS, weights},
                {DNNL_ARG_DIFF_WEIGHTS, weights},
                {DNNL_ARG_BIAS, bias},
                {DNNL_ARG_DIFF_BIAS, bias}},
               scratch);
    };
    run();
    const double start = now_s();
    run();
    return now_s() - start;
  }

 private:
  static void* room(std::vector<float>& memory, std::size_t bytes) {
    const std::size_t floats = bytes / sizeof(float) + 16;
    if (memory.size() < floats) memory.assign(floats, 0.5f);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return reinterpret_cast<void*>((address + 63) / 64 * 64);
  }

  std::size_t source_bytes_, target_bytes_, weights_bytes_;
  std::vector<float> source_, target_, weights_, bias_, scratch_;
};

// Whether Winograd's algorithm is the faster one as a rule, where it fits.
bool favours_winograd(const OpSpec& spec) {
  return spec.inputs[0].channels >= 64 && spec.output.channels >= 64 && spec.output.area() >= 16;
}

// `make(algorithm)` builds the pass; the tuner, if there is one, decides which one stays.
template <typename Make>
Pass tuned(const char* name, const Convolution& layer, const OpSpec& spec, Tuner* tuner,
           const Geometry& g, Make&& make) {
  // oneDNN 2.6's Winograd is wrong in backward-data where the padding after differs from that
  // before.
  const bool even_padding =
      padding_after(spec.inputs[0].height, spec.output.height, layer) == layer.padding &&
      padding_after(spec.inputs[0].width, spec.output.width, layer) == layer.padding;
  const bool winograd_fits =
      layer.kernel == 3 && layer.stride == 1 && layer.groups == 1 && !spec.first && even_padding;
  if (!winograd_fits || (!tuner && !favours_winograd(spec)))
    return make(Algorithm::convolution_direct);
  const std::string key = tuner_key(name, layer, spec);
  if (tuner && spec.batch != spec.tuning_batch) {
    if (tuner->recall(key, kDirect) != kWinograd) return make(Algorithm::convolution_direct);
  }
  try {
    Pass winograd = make(Algorithm::convolution_winograd);
    if (!tuner || spec.batch != spec.tuning_batch) return winograd;
    Pass direct = make(Algorithm::convolution_direct);
    TimingMemory memory(g.source, g.target, stored_weights(g));
    const Tuner::Candidate candidates[] = {{kDirect, [&] { return memory.time(direct); }},
                                           {kWinograd, [&] { return memory.time(winograd); }}};
    return tuner->choose(key, candidates) == kWinograd ? std::move(winograd) : std::move(direct);
  } catch (const dnnl::error&) {  // oneDNN has no Winograd for these sizes
    return make(Algorithm::convolution_direct);
  }
}

}  // namespace

std::unique_ptr<Op> make_convolution(const Convolution& layer, const OpSpec& spec, Tuner* tuner) {
  const Geometry g = geometry(layer, spec, spec.batch);
  const Desc stored = stored_weights(geometry(layer, spec, spec.tuning_batch));
  ProductPasses passes;
  passes.forward = tuned("forward", layer, spec, tuner, g, [&](Algorithm algorithm) {
    return forward_pass(g, stored, algorithm, spec.training, layer.relu);
  });
  if (spec.training)
    passes.backward_weights =
        tuned("backward-weights", layer, spec, tuner, g,
              [&](Algorithm algorithm) { return backward_weights_pass(g, stored, algorithm); });
  if (spec.training && spec.wants_input_gradient)
    passes.backward_data = tuned("backward-data", layer, spec, tuner, g, [&](Algorithm algorithm) {
      return backward_data_pass(g, stored, algorithm);
    });
  return std::make_unique<ProductOp>(spec, layer.relu, std::move(passes));
}

std::unique_ptr<StoredLayout> convolution_layout(const Convolution& layer, const OpSpec& spec) {
  const Geometry g = geometry(layer, spec, spec.tuning_batch);
  return std::make_unique<DescLayout>(g.weights_plain, stored_weights(g));
}

}  // namespace convoy::onednn
