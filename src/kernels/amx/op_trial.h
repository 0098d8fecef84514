// For tests: runs one op of the family on plain f32 arrays, in buffers full of garbage, and hands
// back plain arrays.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "kernels/amx/family.h"
#include "kernels/amx/ops.h"
#include "kernels/amx/rows.h"

namespace convoy::amx {

inline float round_bf16(float v) {
  std::uint32_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}

// Random numbers that bf16 holds exactly.
inline std::vector<float> random_plain(Rng& rng, std::size_t count, float spread = 1,
                                       float offset = 0) {
  std::vector<float> v(count);
  for (float& x : v) x = round_bf16(rng.normal() * spread + offset);
  return v;
}
inline int between(Rng& rng, int low, int high) {
  return low + int(rng.below(std::uint32_t(high - low + 1)));
}
// More small numbers than large ones.
inline int mostly_small(Rng& rng, int low, int high) {
  return low + int(std::exp(rng.uniform() * std::log(double(high - low + 1) + 0.99))) - 1;
}

// 64-byte aligned memory full of NaN.
class Garbage {
 public:
  explicit Garbage(std::size_t bytes)
      : bytes_(bytes),
        memory_(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64))) {
    std::memset(memory_.get(), 0xff, (bytes + 127) / 64 * 64);
  }
  std::byte* get() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

// Fails where a row or lane that pads is not zero.
inline void expect_padding_zero(const Layout& l, const std::byte* memory) {
  const Bf16* v = value(memory);
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < l.size(); ++at) {
    const std::size_t plane = at / l.plane_size(), row = at % l.plane_size() / kLanes;
    const std::size_t channel = plane % l.planes * kLanes + at % kLanes;
    const std::size_t image = plane / l.planes * l.lot + row % l.lot;
    const bool real = row / l.lot < std::size_t(l.positions) && image < std::size_t(l.batch) &&
                      channel < std::size_t(l.channels);
    if (!real && v[at] != 0) ++wrong;
  }
  EXPECT_EQ(wrong, 0u) << "padding is not zero";
}

// A value that an op has to make (where there is a plain one, else nothing): in two halves.
class Unmade {
 public:
  Unmade(const Layout& layout, const std::vector<float>* plain, bool backward, std::byte* to)
      : layout_(layout), plain_(plain), to_(to), half_(layout.bytes()) {
    if (!plain) return;
    std::vector<float> half = *plain;
    for (float& v : half) v /= 2;
    import_plain(layout, half.data(), value(half_.get()));
    std::memset(to, 0xff, layout.size() * sizeof(Bf16));
    if (backward) import_plain(layout, half.data(), value(to));  // in place
    making_ = {.x = value(backward ? to : half_.get()),
               .more = value(half_.get()),
               .to = value(to),
               .a = ones_.data(),
               .b = backward ? ones_.data() : nullptr,
               .c = zeros_.data()};
  }
  const std::byte* left() const {
    return plain_ ? reinterpret_cast<const std::byte*>(&making_) : nullptr;
  }
  void expect_made() const {
    if (!plain_) return;
    std::vector<float> made(plain_->size());
    export_plain(layout_, value(static_cast<const std::byte*>(to_)), made.data());
    EXPECT_EQ(made, *plain_);
    expect_padding_zero(layout_, to_);
  }

 private:
  Layout layout_;
  const std::vector<float>* plain_;
  std::byte* to_;
  Garbage half_;
  std::vector<float> ones_ = std::vector<float>(layout_.lanes(), 1.0f),
                     zeros_ = std::vector<float>(layout_.lanes(), 0.0f);
  Making making_;
};

class OpTrial {
 public:
  OpSpec spec;
  std::vector<std::vector<float>> inputs;  // plain
  std::vector<float> weight, bias;         // plain
  std::vector<float> output_gradient;      // plain
  std::vector<float>
      earlier_gradient;  // plain; where given, the first input gradient is added to it
  std::vector<float> running_mean, running_variance;
  StepKey key;
  // Sums over gradients. `give`: backward gets those over its output gradient, with the ReLU
  // applied, where it can use them. `take`: it takes those over its first input gradient, where it
  // can.
  bool give = false, take = false, take_behind_relu = false;
  std::vector<float> factor;  // plain, of the first input's shape; may be empty
  std::vector<float> signs;   // scale and shift of each channel of the first input, with the factor
                              // instead of its values' signs; may be empty
  // The op makes its input and its output's gradient itself, and leaves to others what it can leave
  // (making.h), where it can.
  bool left = false;

  std::vector<float> output, weight_gradient, bias_gradient;  // results, plain
  std::vector<std::vector<float>> input_gradients;
  std::vector<double> taken;  // [2][channels of the first input]; empty: none
  std::size_t padding_gradients =
      0;  // stored weight gradients beyond the plain ones that are not zero

  void run() {
    const auto family = make_family();
    const auto layout = family->weight_layout(spec);
    stored_ = std::vector<float>(weight.empty() ? 0 : layout->stored_count());
    if (!weight.empty()) layout->from_plain(weight.data(), stored_.data());
    std::vector<float> stored_bias = bias, stored_gradient(stored_.size(), NAN),
                       stored_bias_gradient(bias.size(), NAN);
    for (auto* v : {&stored_bias, &stored_bias_gradient}) v->resize((v->size() + 15) / 16 * 16);
    spec.weight = stored_.data();
    spec.bias = bias.empty() ? nullptr : stored_bias.data();
    spec.weight_gradient = stored_gradient.data();
    spec.bias_gradient = stored_bias_gradient.data();
    if (!running_mean.empty()) {
      spec.running_mean = running_mean.data();
      spec.running_variance = running_variance.data();
    }
    op_ = family->bind(spec);
    forward(*family);
    if (!spec.training) return;
    backward(*family);
    if (!weight.empty()) {
      weight_gradient.resize(weight.size());
      layout->to_plain(stored_gradient.data(), weight_gradient.data());
      std::vector<float> again(stored_.size());
      layout->from_plain(weight_gradient.data(), again.data());
      for (std::size_t i = 0; i < again.size(); ++i)
        padding_gradients += again[i] != stored_gradient[i];
    }
    bias_gradient.assign(stored_bias_gradient.begin(), stored_bias_gradient.begin() + bias.size());
  }

 private:
  Layout layout(const Shape& shape) const { return layout_of(shape, spec.batch); }

  void forward(const Family& family) {
    std::vector<const std::byte*> pointers;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (spec.first) {
        values_.emplace_back(inputs[i].size() * sizeof(float));
        std::memcpy(values_.back().get(), inputs[i].data(), inputs[i].size() * sizeof(float));
      } else {
        values_.emplace_back(family.value_bytes(spec.inputs[i], spec.batch));
        import_plain(layout(spec.inputs[i]), inputs[i].data(), value(values_.back().get()));
      }
    }
    for (const Garbage& v : values_) pointers.push_back(v.get());
    const OpTraits& traits = op_->traits();
    const Layout in = layout(spec.inputs[0]);
    const Unmade unmade(in, left && traits.makes_input ? &inputs[0] : nullptr, false,
                        values_[0].get());
    const Garbage leave(traits.left_bytes);
    const bool leaves = left && traits.left_bytes > 0;
    saved_ = std::make_unique<Garbage>(op_->traits().saved_bytes);
    scratch_ = std::make_unique<Garbage>(op_->traits().scratch_bytes);
    const std::size_t plain = spec.output.count() * spec.batch;
    output_ = std::make_unique<Garbage>(spec.last ? plain * sizeof(float)
                                                  : family.value_bytes(spec.output, spec.batch));
    op_->forward({.inputs = pointers,
                  .output = output_->get(),
                  .saved = saved_->get(),
                  .scratch = scratch_->get(),
                  .key = key,
                  .leave = leaves ? leave.get() : nullptr,
                  .left = unmade.left()});
    unmade.expect_made();
    if (leaves) make_value(layout(spec.output), *making(leave.get()));
    output.resize(plain);
    if (spec.last) {
      std::memcpy(output.data(), output_->get(), plain * sizeof(float));
    } else {
      export_plain(layout(spec.output), value(output_->get()), output.data());
      expect_padding_zero(layout(spec.output), output_->get());
    }
  }

  void backward(const Family& family) {
    const OpTraits& traits = op_->traits();
    Garbage gradient(output_->bytes());
    if (spec.last) {
      std::memcpy(gradient.get(), output_gradient.data(), output_gradient.size() * sizeof(float));
    } else {
      import_plain(layout(spec.output), output_gradient.data(), value(gradient.get()));
    }
    std::memset(scratch_->get(), 0xff, scratch_->bytes());
    // What backward may not read is spoiled.
    if (!traits.reads_inputs) {
      for (const Garbage& v : values_) std::memset(v.get(), 0xff, v.bytes());
    }
    if (!traits.reads_output) std::memset(output_->get(), 0xff, output_->bytes());
    std::vector<Garbage> given;
    std::vector<const std::byte*> pointers;
    std::vector<std::byte*> targets;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      given.emplace_back(family.value_bytes(spec.inputs[i], spec.batch));
      pointers.push_back(values_[i].get());
      const bool passed = traits.passes_gradient || (traits.passes_second && i == 1);
      targets.push_back(spec.wants_input_gradient && !spec.first && !passed ? given.back().get()
                                                                            : nullptr);
    }
    const bool add = !earlier_gradient.empty() && traits.adds_gradient && targets[0];
    if (add) {
      import_plain(layout(spec.inputs[0]), earlier_gradient.data(), value(targets[0]));
    } else {
      earlier_gradient.clear();
    }
    Garbage given_sums(traits.sums_bytes), taken_sums(sums_bytes(layout(spec.inputs[0])));
    if (give && traits.sums_bytes > 0) {
      make_sums(reinterpret_cast<double*>(given_sums.get()), gradient.get());
    } else {
      give = false;
    }
    take = take && traits.takes_sums && targets[0];
    Garbage factor_value(family.value_bytes(spec.inputs[0], spec.batch));
    if (!factor.empty())
      import_plain(layout(spec.inputs[0]), factor.data(), value(factor_value.get()));
    std::vector<float> sign_lanes(2 * layout(spec.inputs[0]).lanes());
    const auto second = signs.begin() + std::ptrdiff_t(signs.size() / 2);
    std::copy(signs.begin(), second, sign_lanes.begin());
    std::copy(second, signs.end(), sign_lanes.begin() + std::ptrdiff_t(sign_lanes.size() / 2));
    const GradientSums wanted{
        .factor = factor.empty() ? nullptr : factor_value.get(),
        .relu = take_behind_relu,
        .saved = reinterpret_cast<const std::byte*>(signs.empty() ? nullptr : sign_lanes.data()),
        .sums = taken_sums.get()};
    const Unmade unmade(layout(spec.output),
                        left && traits.makes_gradient ? &output_gradient : nullptr, true,
                        gradient.get());
    const Garbage leave(traits.left_bytes);
    const bool leaves = left && traits.left_bytes > 0 && targets[0];
    op_->backward({.inputs = pointers,
                   .output = output_->get(),
                   .saved = saved_->get(),
                   .scratch = scratch_->get(),
                   .output_gradient = gradient.get(),
                   .input_gradients = targets,
                   .add_to_gradient = add,
                   .take = take ? &wanted : nullptr,
                   .taken = give ? given_sums.get() : nullptr,
                   .leave = leaves ? leave.get() : nullptr,
                   .left = unmade.left()});
    unmade.expect_made();
    std::memset(scratch_->get(), 0xff, scratch_->bytes());
    if (leaves) make_value(layout(spec.inputs[0]), *making(leave.get()));
    if (take) {
      const auto* sums = reinterpret_cast<const double*>(taken_sums.get());
      const int channels = spec.inputs[0].channels, lanes = layout(spec.inputs[0]).lanes();
      taken.assign(sums, sums + channels);
      taken.insert(taken.end(), sums + lanes, sums + lanes + channels);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      input_gradients.emplace_back(inputs[i].size());
      const bool passed = traits.passes_gradient || (traits.passes_second && i == 1);
      const std::byte* from = passed ? gradient.get() : targets[i];
      if (!from || spec.first || spec.last) continue;
      export_plain(layout(spec.inputs[i]), value(from), input_gradients.back().data());
      expect_padding_zero(layout(spec.inputs[i]), from);
    }
    if (spec.last && targets[0]) {
      export_plain(layout(spec.inputs[0]), value(static_cast<const std::byte*>(targets[0])),
                   input_gradients[0].data());
    }
  }

  // What a layer that writes this op's output gradient would leave.
  void make_sums(double* sums, std::byte* gradient) {
    const int lanes = layout(spec.output).lanes();
    std::fill_n(sums, 2 * lanes, 0.0);
    std::vector<float> g = output_gradient;
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (op_->traits().sums_behind_relu && !(output[i] > 0)) g[i] = 0;
      const std::size_t channel = i / spec.output.area() % spec.output.channels;
      sums[channel] += g[i];
      if (op_->traits().sums_with_input) sums[lanes + channel] += double(g[i]) * inputs[0][i];
    }
    import_plain(layout(spec.output), g.data(), value(gradient));
  }

  std::vector<float> stored_;
  std::unique_ptr<Op> op_;
  std::vector<Garbage> values_;
  std::unique_ptr<Garbage> output_, saved_, scratch_;
};

// The largest |got - want| / allowed(i); at most 1 is good. NaN counts as bad.
template <typename Allowed>
double worst(const std::vector<float>& got, const std::vector<double>& want, Allowed&& allowed) {
  double most = got.size() == want.size() ? 0 : 1e30;
  for (std::size_t i = 0; i < got.size() && i < want.size(); ++i) {
    const double error = std::abs(got[i] - want[i]) / allowed(i);
    if (!(error <= most)) most = std::isnan(error) ? 1e30 : error;
  }
  return most;
}
// Half a unit in the last place of bf16, and what f32 sums of this magnitude may lose.
inline double bf16_slack(double want, double magnitude) {
  return std::abs(want) / 256 + magnitude * 1e-5 + 1e-30;
}

}  // namespace convoy::amx
