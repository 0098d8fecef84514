#include "kernels/amx/family.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/amx/layout.h"
#include "kernels/amx/ops.h"
#include "kernels/amx/rows.h"
#include "kernels/cpu.h"

namespace convoy::amx {

namespace {

#if defined(CONVOY_ON_AVX2)
constexpr const char* kName = "avx2";
bool cpu_suffices() { return true; }
#elif defined(CONVOY_ON_AVX512)
constexpr const char* kName = "avx512_bf16";
bool cpu_suffices() { return cpu().avx512_bf16; }
#else
constexpr const char* kName = "amx";
bool cpu_suffices() { return cpu().amx_works; }
#endif

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // clang 14 does not deduce it

std::unique_ptr<Op> make_op(const OpSpec& spec) {
  return std::visit(
      Overloaded{[&](const Convolution&) { return make_product(spec); },
                 [&](const Dense&) { return make_product(spec); },
                 [&](const BatchNorm&) { return make_norm(spec); },
                 [&](const Relu&) { return make_relu(spec); },
                 [&](const MaxPool&) { return make_pool(spec); },
                 [&](const AveragePool&) { return make_pool(spec); },
                 [&](const AdaptiveAveragePool&) { return make_pool(spec); },
                 [&](const Dropout&) { return make_dropout(spec); },
                 [&](const Concat&) { return make_concat(spec); },
                 [&](const Add&) { return make_add(spec); },
                 [&](const LocalResponseNorm&) { return make_local_response_norm(spec); },
                 [&](const Input&) -> std::unique_ptr<Op> {
                   CHECK(false, "{}: the input is not computed", spec.name);
                 }},
      spec.layer);
}

bool is_product(const Layer& layer) {
  return std::holds_alternative<Convolution>(layer) || std::holds_alternative<Dense>(layer);
}

class PlainLayout : public StoredLayout {
 public:
  explicit PlainLayout(std::size_t count) : count_(count) {}
  std::size_t stored_count() const override { return (count_ + 15) / 16 * 16; }
  void to_plain(const float* stored, float* plain) const override {
    std::copy_n(stored, count_, plain);
  }
  void from_plain(const float* plain, float* stored) const override {
    std::fill_n(std::copy_n(plain, count_, stored), stored_count() - count_, 0.0f);
  }

 private:
  std::size_t count_;
};

class Bf16Family : public Family {
 public:
  std::string name() const override { return kName; }

  std::size_t value_bytes(const Shape& shape, int batch) const override {
    return layout_of(shape, batch).bytes();
  }

  std::unique_ptr<StoredLayout> weight_layout(const OpSpec& spec) const override {
    if (is_product(spec.layer)) return make_product_weights(spec);
    return std::make_unique<PlainLayout>(spec.output.channels);
  }

  std::unique_ptr<Op> bind(const OpSpec& spec) const override {
    const bool product = is_product(spec.layer);
    const bool import = spec.first && !(product && reads_plain_input(spec));
    const bool output = spec.last && !(product && writes_plain_logits(spec));
    if (!import && !output) return make_op(spec);
    OpSpec inner = spec, bridge = spec;
    if (import) inner.first = false;
    if (output) inner.last = false;
    bridge.first = import;
    bridge.last = output;
    return make_bridge(bridge, make_op(inner));
  }

  bool folds_relu(const Layer& layer) const override {
    return is_product(layer) || std::holds_alternative<BatchNorm>(layer) ||
           std::holds_alternative<Add>(layer) || std::holds_alternative<MaxPool>(layer);
  }

  bool folds_add() const override { return true; }

  void add(std::byte* accumulator, const std::byte* addend, const Shape& shape,
           int batch) const override {
    add_values(layout_of(shape, batch), value(accumulator), value(addend), false,
               value(accumulator));
  }
};

}  // namespace

bool is_usable() { return cpu_suffices(); }

std::unique_ptr<Family> make_family() {
  CHECK(is_usable(), "this CPU cannot run the family {}", kName);
  return std::make_unique<Bf16Family>();
}

}  // namespace convoy::amx
