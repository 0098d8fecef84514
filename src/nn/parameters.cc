#include "nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/file.h"
#include "base/rng.h"
#include "nn/plan.h"

namespace convoy {
namespace {

constexpr std::size_t kAlign = 16;  // floats: a cache line

std::size_t aligned(std::size_t floats) { return (floats + kAlign - 1) / kAlign * kAlign; }

// Biases and norms: as they are.
class PlainLayout : public StoredLayout {
 public:
  explicit PlainLayout(std::size_t count) : count_(count) {}
  std::size_t stored_count() const override { return aligned(count_); }
  void to_plain(const float* stored, float* plain) const override {
    std::copy_n(stored, count_, plain);
  }
  void from_plain(const float* plain, float* stored) const override {
    std::copy_n(plain, count_, stored);
  }

 private:
  std::size_t count_;
};

}  // namespace

Parameters::Parameters(const Network& network, const Family& family, int batch) {
  std::vector<ParameterSpec> specs = network.parameters();
  const std::vector<PlannedLayer> plan = plan_layers(network, family);
  // Backward finishes the last layer first.
  std::stable_sort(specs.begin(), specs.end(),
                   [](const auto& a, const auto& b) { return a.node > b.node; });
  for (ParameterSpec& spec : specs) {
    std::unique_ptr<StoredLayout> layout;
    if (spec.role == Role::weight) {
      const auto planned = std::find_if(plan.begin(), plan.end(), [&](const PlannedLayer& layer) {
        return layer.node == spec.node;
      });
      CHECK(planned != plan.end(), "{} is not in the plan", spec.name);
      layout = family.weight_layout(op_spec(network, plan, *planned, batch, batch, true));
    } else {
      layout = std::make_unique<PlainLayout>(spec.count());
    }
    const std::size_t begin = size_;
    size_ += aligned(layout->stored_count());
    parameters_.push_back({std::move(spec), begin, size_});
    layouts_.push_back(std::move(layout));
  }
  values_ = FloatArena(size_);
  gradients_ = FloatArena(size_);
  for (const Node& node : network.nodes())
    if (std::holds_alternative<BatchNorm>(node.layer)) {
      const std::size_t padded = aligned(std::size_t(node.shape.channels));
      buffers_.push_back({node.name + ".running_mean", node.id, std::vector<float>(padded, 0.0f)});
      buffers_.push_back({node.name + ".running_var", node.id, std::vector<float>(padded, 1.0f)});
      for (std::size_t i = buffers_.size() - 2; i < buffers_.size(); ++i)
        buffers_[i].values.resize(std::size_t(node.shape.channels));
    }
}

RunningStatistics Parameters::running_statistics(NodeId node) {
  RunningStatistics found;
  for (Buffer& buffer : buffers_)
    if (buffer.node == node)
      (buffer.name.ends_with("running_mean") ? found.mean : found.variance) = buffer.values.data();
  return found;
}

const Parameter* Parameters::find(NodeId node, Role role) const {
  for (const Parameter& parameter : parameters_)
    if (parameter.spec.node == node && parameter.spec.role == role) return &parameter;
  return nullptr;
}

const Parameter* Parameters::find(const std::string& name) const {
  for (const Parameter& parameter : parameters_)
    if (parameter.spec.name == name) return &parameter;
  return nullptr;
}

void Parameters::export_values(const Parameter& parameter, std::span<float> plain) const {
  export_from(values(), parameter, plain);
}

void Parameters::export_gradients(const Parameter& parameter, std::span<float> plain) const {
  export_from(gradients(), parameter, plain);
}

void Parameters::import_values(const Parameter& parameter, std::span<const float> plain) {
  import_to(values(), parameter, plain);
}

void Parameters::export_from(std::span<const float> arena, const Parameter& parameter,
                             std::span<float> plain) const {
  CHECK(plain.size() == parameter.spec.count(), "{}: {} floats for {}", parameter.spec.name,
        plain.size(), parameter.spec.count());
  layouts_[std::size_t(&parameter - parameters_.data())]->to_plain(arena.data() + parameter.begin,
                                                                   plain.data());
}

void Parameters::import_to(std::span<float> arena, const Parameter& parameter,
                           std::span<const float> plain) const {
  CHECK(plain.size() == parameter.spec.count(), "{}: {} floats for {}", parameter.spec.name,
        plain.size(), parameter.spec.count());
  std::fill(arena.begin() + parameter.begin, arena.begin() + parameter.end, 0.0f);
  layouts_[std::size_t(&parameter - parameters_.data())]->from_plain(
      plain.data(), arena.data() + parameter.begin);
}

std::vector<std::uint32_t> Parameters::padding() const {
  std::vector<float> stored(size_), ones;
  for (const Parameter& parameter : parameters_) {
    ones.assign(parameter.spec.count(), 1.0f);
    import_to(stored, parameter, ones);
  }
  std::vector<std::uint32_t> places;
  for (std::size_t i = 0; i < size_; ++i)
    if (stored[i] == 0) places.push_back(std::uint32_t(i));
  return places;
}

void Parameters::initialize(const Network& network, std::uint64_t seed) {
  std::vector<float> plain;
  for (const Parameter& parameter : parameters_) {
    const ParameterSpec& spec = parameter.spec;
    plain.assign(spec.count(), spec.role == Role::norm_weight ? 1.0f : 0.0f);
    const std::size_t rows = std::size_t(spec.dims[0]);
    Rng rng(seed, Purpose::initialize, std::uint32_t(spec.role), std::uint64_t(spec.node));
    if (spec.role == Role::weight) {
      const double fan_in = double(spec.count()) / double(rows);
      if (std::holds_alternative<Convolution>(network.node(spec.node).layer)) {
        const float deviation = float(std::sqrt(2.0 / fan_in));
        for (float& value : plain) value = deviation * rng.normal();
      } else {
        const float bound = float(1.0 / std::sqrt(fan_in));
        for (float& value : plain) value = bound * (2 * rng.uniform() - 1);
      }
    }
    import_values(parameter, plain);
  }
  for (Buffer& buffer : buffers_)
    std::fill(buffer.values.begin(), buffer.values.end(),
              buffer.name.ends_with("running_var") ? 1.0f : 0.0f);
}

std::string Parameters::sha256() const {
  Sha256 digest;
  std::vector<float> plain;
  for (auto parameter = parameters_.rbegin(); parameter != parameters_.rend(); ++parameter) {
    plain.resize(parameter->spec.count());
    export_values(*parameter, plain);
    digest.add(std::as_bytes(std::span(plain)));
  }
  for (const Buffer& buffer : buffers_) digest.add(std::as_bytes(std::span(buffer.values)));
  return digest.hex();
}

}  // namespace convoy
