#include "kernels/onednn/family.h"

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "base/check.h"
#include "kernels/cpu.h"
#include "kernels/onednn/engine.h"
#include "kernels/onednn/ops.h"
#include "kernels/parallel.h"
#include "kernels/tuner.h"

namespace convoy {
namespace {

std::string machine_name() {
  const auto* version = dnnl::version();
  return fmt::format("{} {} oneDNN {}.{}.{}", cpu().model, cpu().isa(), version->major,
                     version->minor, version->patch);
}

class OnednnFamily : public Family {
 public:
  explicit OnednnFamily(const OnednnOptions& options) {
    if (!options.fixed_algorithms) tuner_.emplace(default_tuner_file(), machine_name());
  }

  std::string name() const override { return "oneDNN f32"; }

  std::size_t value_bytes(const Shape& shape, int batch) const override {
    return onednn::value_floats(shape) * batch * sizeof(float);
  }

  std::unique_ptr<StoredLayout> weight_layout(const OpSpec& spec) const override {
    if (const auto* layer = std::get_if<Convolution>(&spec.layer))
      return onednn::convolution_layout(*layer, spec);
    if (const auto* layer = std::get_if<Dense>(&spec.layer))
      return onednn::dense_layout(*layer, spec);
    return nullptr;
  }

  std::unique_ptr<Op> bind(const OpSpec& spec) const override {
    return std::visit([&](const auto& layer) { return bind(layer, spec); }, spec.layer);
  }

  bool folds_relu(const Layer& layer) const override {
    return std::holds_alternative<Convolution>(layer) || std::holds_alternative<Dense>(layer) ||
           std::holds_alternative<BatchNorm>(layer) || std::holds_alternative<Add>(layer) ||
           std::holds_alternative<MaxPool>(layer);
  }

  void add(std::byte* accumulator, const std::byte* addend, const Shape& shape,
           int batch) const override {
    auto* sum = reinterpret_cast<float*>(accumulator);
    const auto* more = reinterpret_cast<const float*>(addend);
    parallel_for(onednn::value_floats(shape) * batch, 16384,
                 [=](std::size_t begin, std::size_t end) {
                   for (std::size_t i = begin; i < end; ++i) sum[i] += more[i];
                 });
  }

 private:
  using Bound = std::unique_ptr<Op>;
  Bound bind(const Input&, const OpSpec& spec) const {
    CHECK(false, "{}: the input has no kernel", spec.name);
    return nullptr;
  }
  Bound bind(const Convolution& layer, const OpSpec& spec) const {
    return onednn::make_convolution(layer, spec, tuner_ ? &*tuner_ : nullptr);
  }
  Bound bind(const BatchNorm& layer, const OpSpec& spec) const {
    return onednn::make_batch_norm(layer, spec);
  }
  Bound bind(const Relu&, const OpSpec& spec) const { return onednn::make_relu(spec); }
  Bound bind(const MaxPool& layer, const OpSpec& spec) const {
    return onednn::make_max_pool(layer, spec);
  }
  Bound bind(const AveragePool& layer, const OpSpec& spec) const {
    return onednn::make_average_pool(layer, spec);
  }
  Bound bind(const AdaptiveAveragePool&, const OpSpec& spec) const {
    return onednn::make_adaptive_average_pool(spec);
  }
  Bound bind(const Dense& layer, const OpSpec& spec) const {
    return onednn::make_dense(layer, spec);
  }
  Bound bind(const Dropout& layer, const OpSpec& spec) const {
    return onednn::make_dropout(layer, spec);
  }
  Bound bind(const Concat&, const OpSpec& spec) const { return onednn::make_concat(spec); }
  Bound bind(const Add& layer, const OpSpec& spec) const { return onednn::make_add(layer, spec); }
  Bound bind(const LocalResponseNorm& layer, const OpSpec& spec) const {
    return onednn::make_local_response_norm(layer, spec);
  }

  mutable std::optional<Tuner> tuner_;
};

}  // namespace

std::unique_ptr<Family> make_onednn_family(const OnednnOptions& options) {
  return std::make_unique<OnednnFamily>(options);
}

}  // namespace convoy
