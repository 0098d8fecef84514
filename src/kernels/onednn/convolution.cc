// Convolution: direct or Winograd (oneDNN's on AVX-512, our own elsewhere), and for the weights of
// a first layer a kernel of our own; each pass is chosen by the tuner. The weights lie in the arena
// in the layout in which forward reads and backward-weights writes them; backward-data of the
// direct kind reads another one, made on the way, as are values where only other layouts have fast
// kernels.
#include <cstring>
#include <functional>

#include "base/check.h"
#include "base/clock.h"
#include "kernels/onednn/engine.h"
#include "kernels/onednn/layout.h"
#include "kernels/onednn/ops.h"
#include "kernels/onednn/own_passes.h"
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

std::unique_ptr<Pass> forward_pass(const Geometry& g, const Desc& stored, Algorithm algorithm,
                                   bool training, bool relu) {
  const auto desc = first_fast(g, stored, [&](const Geometry& form, const Desc& weights) {
    return forward_desc(form, weights, algorithm, training, relu);
  });
  auto pass = std::make_unique<PrimitivePass>(Forward(desc), desc.scratchpad_desc());
  pass->input(DNNL_ARG_SRC, g.source, desc.src_desc());
  pass->input(DNNL_ARG_WEIGHTS, stored, desc.weights_desc());
  if (g.has_bias) pass->input(DNNL_ARG_BIAS, g.bias, g.bias);
  pass->output(DNNL_ARG_DST, g.target, desc.dst_desc());
  return pass;
}

std::unique_ptr<Pass> backward_data_pass(const Geometry& g, const Desc& stored,
                                         Algorithm algorithm) {
  const auto make = [&](const Geometry& form, const Desc& weights) {
    return BackwardData::primitive_desc(
        BackwardData::desc(algorithm, form.source, weights, form.target, g.strides,
                           g.padding_before, g.padding_after),
        scratchpad_attr(), engine(), forward_desc(form, g.weights_any(), algorithm, true, false));
  };
  // The direct kind has no kernel of its own for stored weights, Winograd's has.
  const bool direct = algorithm == Algorithm::convolution_direct;
  const auto desc = first_fast(g, direct ? g.weights_any() : stored, make);
  auto pass = std::make_unique<PrimitivePass>(BackwardData(desc), desc.scratchpad_desc());
  pass->input(DNNL_ARG_WEIGHTS, stored, desc.weights_desc());
  pass->input(DNNL_ARG_DIFF_DST, g.target, desc.diff_dst_desc());
  pass->output(DNNL_ARG_DIFF_SRC, g.source, desc.diff_src_desc());
  return pass;
}

std::unique_ptr<Pass> backward_weights_pass(const Geometry& g, const Desc& stored,
                                            Algorithm algorithm) {
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
  auto pass = std::make_unique<PrimitivePass>(BackwardWeights(desc), desc.scratchpad_desc());
  pass->input(DNNL_ARG_SRC, g.source, desc.src_desc());
  pass->input(DNNL_ARG_DIFF_DST, g.target, desc.diff_dst_desc());
  pass->output(DNNL_ARG_DIFF_WEIGHTS, stored, desc.diff_weights_desc());
  if (g.has_bias) pass->output(DNNL_ARG_DIFF_BIAS, g.bias, g.bias);
  return pass;
}

constexpr const char* kDirect = "direct";

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
    const double start = now_s();
    pass.run({{DNNL_ARG_SRC, source},
              {DNNL_ARG_DIFF_SRC, source},
              {DNNL_ARG_DST, target},
              {DNNL_ARG_DIFF_DST, target},
              {DNNL_ARG_WEIGHTS, weights},
              {DNNL_ARG_DIFF_WEIGHTS, weights},
              {DNNL_ARG_BIAS, bias},
              {DNNL_ARG_DIFF_BIAS, bias}},
             scratch);
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

bool lies_as(const Desc& desc, Tag tag) {
  return desc == Desc(desc.dims(), Memory::data_type::f32, tag);
}

// What our own kernels need to know, and whether there is one.
ImageConvolution image_size(const Convolution& layer, const OpSpec& spec) {
  return {spec.batch, spec.inputs[0], spec.output, layer.kernel, layer.stride, layer.padding};
}

bool has_own_image_weights(const Convolution& layer, const OpSpec& spec, const Geometry& g) {
  return spec.first && layer.groups == 1 && has_image_weights(layer.kernel) &&
         lies_as(g.target, Tag::nChw8c);
}

winograd::Size winograd_size(const Convolution& layer, const OpSpec& spec) {
  const auto padded = [](Shape shape) {
    shape.channels = (shape.channels + block() - 1) / block() * block();
    return shape;
  };
  return {spec.batch,   padded(spec.inputs[0]), padded(spec.output),
          layer.kernel, layer.padding,          threads()};
}

bool allows_winograd(const Convolution& layer, const OpSpec& spec) {
  return (layer.kernel == 3 || layer.kernel == 5) && layer.stride == 1 && layer.groups == 1 &&
         !spec.first;
}

bool has_own_winograd(const Geometry& g, const Desc& stored) {
  return lies_as(g.source, Tag::nChw8c) && lies_as(g.target, Tag::nChw8c) &&
         lies_as(stored, Tag::OIhw8i8o) && g.padding_before[0] < g.weight_dims[2];
}

// Whether Winograd's algorithm is the faster one as a rule, where it fits.
bool favours_winograd(const OpSpec& spec) {
  return spec.inputs[0].channels >= 64 && spec.output.channels >= 64 && spec.output.area() >= 16;
}

// Another way to make a pass than oneDNN's direct kernels.
struct Other {
  const char* name;
  bool favoured;                                // as a rule, where no tuner decides
  std::function<std::unique_ptr<Pass>()> make;  // null where there is none
};

// The tuner, if there is one, decides which of the two stays.
std::unique_ptr<Pass> tuned(const std::string& key, const OpSpec& spec, Tuner* tuner,
                            TimingMemory memory,
                            const std::function<std::unique_ptr<Pass>()>& make_direct,
                            const Other& other) {
  const bool recalls = tuner && spec.batch != spec.tuning_batch;
  if (recalls ? tuner->recall(key, kDirect) != other.name : !tuner && !other.favoured)
    return make_direct();
  auto another = other.make();
  if (another && (recalls || !tuner)) return another;
  auto direct = make_direct();
  if (!another) return direct;
  const Tuner::Candidate candidates[] = {{kDirect, [&] { return memory.time(*direct); }},
                                         {other.name, [&] { return memory.time(*another); }}};
  return tuner->choose(key, candidates) == other.name ? std::move(another) : std::move(direct);
}

}  // namespace

std::unique_ptr<Op> make_convolution(const Convolution& layer, const OpSpec& spec, Tuner* tuner) {
  const Geometry g = geometry(layer, spec, spec.batch);
  const Desc stored = stored_weights(geometry(layer, spec, spec.tuning_batch));
  const int biases = layer.bias ? spec.output.channels : 0;

  const auto choose = [&](const char* name, auto&& make, const Other& other) {
    return tuned(
        tuner_key(name, layer, spec), spec, tuner, {g.source, g.target, stored},
        [&] { return make(Algorithm::convolution_direct); }, other);
  };
  // `make(algorithm)` builds oneDNN's pass, `make_ours(size)` our own.
  const auto winograd = [&](auto&& make, auto&& make_ours) {
    const auto either = [&, make, make_ours]() -> std::unique_ptr<Pass> {
      if (!allows_winograd(layer, spec)) return nullptr;
      if (has_own_winograd(g, stored)) return make_ours(winograd_size(layer, spec));
      // oneDNN 2.6's is wrong in backward-data where the padding after differs from that before.
      if (g.padding_before != g.padding_after) return nullptr;
      try {
        return make(Algorithm::convolution_winograd);
      } catch (const dnnl::error&) {  // oneDNN has none for these sizes
        return nullptr;
      }
    };
    return Other{"winograd", favours_winograd(spec), either};
  };

  const auto forward = [&](Algorithm algorithm) {
    return forward_pass(g, stored, algorithm, spec.training, layer.relu);
  };
  const auto backward_weights = [&](Algorithm algorithm) {
    return backward_weights_pass(g, stored, algorithm);
  };
  const auto backward_data = [&](Algorithm algorithm) {
    return backward_data_pass(g, stored, algorithm);
  };
  ProductPasses passes;
  passes.forward = choose("forward", forward, winograd(forward, [&](const winograd::Size& size) {
                            return winograd_forward(size, biases, layer.relu);
                          }));
  if (spec.training && has_own_image_weights(layer, spec, g))
    passes.backward_weights = choose(
        "backward-weights", backward_weights,
        {"images", spec.inputs[0].channels == 1, [&] {
           return image_backward_weights(image_size(layer, spec), biases, g.weights_plain, stored);
         }});
  else if (spec.training)
    passes.backward_weights = choose("backward-weights", backward_weights,
                                     winograd(backward_weights, [&](const winograd::Size& size) {
                                       return winograd_backward_weights(size, biases);
                                     }));
  if (spec.training && spec.wants_input_gradient)
    passes.backward_data =
        choose("backward-data", backward_data, winograd(backward_data, winograd_backward_data));
  return std::make_unique<ProductOp>(spec, layer.relu, std::move(passes));
}

std::unique_ptr<StoredLayout> convolution_layout(const Convolution& layer, const OpSpec& spec) {
  const Geometry g = geometry(layer, spec, spec.tuning_batch);
  return std::make_unique<DescLayout>(g.weights_plain, stored_weights(g));
}

}  // namespace convoy::onednn
