// Layers that look at one number at a time: ReLU, addition, dropout; and concatenation, which only
// copies. They work on any layout; padding stays zero because zero goes to zero.
#include <cstring>

#include "base/rng.h"
#include "kernels/onednn/engine.h"
#include "kernels/onednn/ops.h"
#include "kernels/parallel.h"

namespace convoy::onednn {

namespace {

constexpr std::size_t kGrain = 16384;  // floats worth waking a thread for

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }
float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

class ReluOp : public Op {
 public:
  explicit ReluOp(const OpSpec& spec) : count_(value_floats(spec.output) * spec.batch) {
    traits_.in_place = true;
    traits_.reads_output = true;
    traits_.spoils_gradient = true;
    traits_.passes_gradient = true;
  }
  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    const float* in = floats(args.inputs[0]);
    float* out = floats(args.output);
    parallel_for(count_, kGrain, [=](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) out[i] = in[i] > 0 ? in[i] : 0.0f;
    });
  }
  void backward(const BackwardArgs& args) override {
    mask_gradient(floats(args.output_gradient), floats(args.output), count_);
  }

 private:
  std::size_t count_;
  OpTraits traits_;
};

class AddOp : public Op {
 public:
  AddOp(const Add& layer, const OpSpec& spec)
      : relu_(layer.relu), count_(value_floats(spec.output) * spec.batch) {
    traits_.in_place = true;
    traits_.reads_output = layer.relu;
    traits_.spoils_gradient = layer.relu;
    traits_.passes_gradient = true;
  }
  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    const float* a = floats(args.inputs[0]);
    const float* b = floats(args.inputs[1]);
    float* out = floats(args.output);
    parallel_for(count_, kGrain, [=, relu = relu_](std::size_t begin, std::size_t end) {
      if (relu) {
        for (std::size_t i = begin; i < end; ++i) {
          const float sum = a[i] + b[i];
          out[i] = sum > 0 ? sum : 0.0f;
        }
      } else {
        for (std::size_t i = begin; i < end; ++i) out[i] = a[i] + b[i];
      }
    });
  }
  void backward(const BackwardArgs& args) override {
    if (relu_) mask_gradient(floats(args.output_gradient), floats(args.output), count_);
  }

 private:
  bool relu_;
  std::size_t count_;
  OpTraits traits_;
};

// Multiplies by 0 or 1 / (1 - rate). The draw depends on (seed, epoch, sample) and the layer's
// name, so that it does not depend on where in a batch, or on which worker, a sample is computed.
// Saved: a byte per number.
class DropoutOp : public Op {
 public:
  DropoutOp(const Dropout& layer, const OpSpec& spec)
      : spec_(spec), rate_(layer.rate), per_sample_(value_floats(spec.output)) {
    for (char letter : spec.name)
      salt_ = (salt_ ^ std::uint64_t(static_cast<unsigned char>(letter))) * 0x100000001b3ull;
    traits_.in_place = true;
    traits_.passes_gradient = true;
    traits_.spoils_gradient = active();
    if (active()) traits_.saved_bytes = per_sample_ * spec.batch;
  }
  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    if (!active()) {
      if (args.output != args.inputs[0])
        std::memcpy(args.output, args.inputs[0], per_sample_ * spec_.batch * sizeof(float));
      return;
    }
    auto* keep = reinterpret_cast<std::uint8_t*>(args.saved);
    parallel_for(std::size_t(spec_.batch), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n) draw(args.key, n, keep + n * per_sample_);
      scale(floats(args.inputs[0]), keep, floats(args.output), begin * per_sample_,
            end * per_sample_);
    });
  }
  void backward(const BackwardArgs& args) override {
    if (!active()) return;
    const auto* keep = reinterpret_cast<const std::uint8_t*>(args.saved);
    float* gradient = floats(args.output_gradient);
    parallel_for(per_sample_ * spec_.batch, kGrain, [&](std::size_t begin, std::size_t end) {
      scale(gradient, keep, gradient, begin, end);
    });
  }

 private:
  bool active() const { return spec_.training && rate_ > 0; }

  void draw(const StepKey& key, std::size_t n, std::uint8_t* keep) const {
    Rng rng(spec_.seed ^ salt_, Purpose::dropout, key.epoch, key.samples[n]);
    const auto threshold = std::uint32_t(double(rate_) * 0x1p32);
    for (std::size_t i = 0; i < per_sample_; ++i) keep[i] = rng.next() >= threshold;
  }

  void scale(const float* in, const std::uint8_t* keep, float* out, std::size_t begin,
             std::size_t end) const {
    const float factor = 1 / (1 - rate_);
    for (std::size_t i = begin; i < end; ++i) out[i] = in[i] * (float(keep[i]) * factor);
  }

  OpSpec spec_;
  float rate_;
  std::size_t per_sample_;
  std::uint64_t salt_ = 0xcbf29ce484222325ull;
  OpTraits traits_;
};

// Along channels. Where every input fills whole blocks a sample of the output is the samples of the
// inputs one after another; otherwise channels move between lanes one by one.
class ConcatOp : public Op {
 public:
  explicit ConcatOp(const OpSpec& spec) : spec_(spec) {
    for (const Shape& shape : spec.inputs)
      whole_blocks_ = whole_blocks_ && shape.channels % block() == 0;
  }
  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    const std::size_t out_floats = value_floats(spec_.output);
    parallel_for(std::size_t(spec_.batch), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n) {
        float* out = floats(args.output) + n * out_floats;
        if (!whole_blocks_) std::memset(out, 0, out_floats * sizeof(float));
        each_input([&](std::size_t i, int first, std::size_t in_floats) {
          const float* in = floats(args.inputs[i]) + n * in_floats;
          if (whole_blocks_)
            std::memcpy(out + first * spec_.output.area(), in, in_floats * sizeof(float));
          else
            each_channel(i, first,
                         [&](std::size_t at_in, std::size_t at_out) { out[at_out] = in[at_in]; });
        });
      }
    });
  }

  void backward(const BackwardArgs& args) override {
    const std::size_t out_floats = value_floats(spec_.output);
    parallel_for(std::size_t(spec_.batch), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n) {
        const float* out = floats(args.output_gradient) + n * out_floats;
        each_input([&](std::size_t i, int first, std::size_t in_floats) {
          if (args.input_gradients[i] == nullptr) return;
          float* in = floats(args.input_gradients[i]) + n * in_floats;
          if (whole_blocks_) {
            std::memcpy(in, out + first * spec_.output.area(), in_floats * sizeof(float));
            return;
          }
          std::memset(in, 0, in_floats * sizeof(float));
          each_channel(i, first,
                       [&](std::size_t at_in, std::size_t at_out) { in[at_in] = out[at_out]; });
        });
      }
    });
  }

 private:
  template <typename Body>
  void each_input(Body&& body) const {
    int first = 0;
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      body(i, first, value_floats(spec_.inputs[i]));
      first += spec_.inputs[i].channels;
    }
  }

  static std::size_t place(const Shape& shape, int channel, std::size_t position) {
    if (!is_blocked(shape)) return channel * shape.area() + position;
    return (channel / block() * shape.area() + position) * block() + channel % block();
  }

  template <typename Body>
  void each_channel(std::size_t i, int first, Body&& body) const {
    const Shape& shape = spec_.inputs[i];
    for (int c = 0; c < shape.channels; ++c)
      for (std::size_t p = 0; p < shape.area(); ++p)
        body(place(shape, c, p), place(spec_.output, first + c, p));
  }

  OpSpec spec_;
  bool whole_blocks_ = true;
  OpTraits traits_;
};

}  // namespace

void mask_gradient(float* gradient, const float* output, std::size_t count) {
  parallel_for(count, kGrain, [=](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) gradient[i] = output[i] > 0 ? gradient[i] : 0.0f;
  });
}

std::unique_ptr<Op> make_relu(const OpSpec& spec) { return std::make_unique<ReluOp>(spec); }
std::unique_ptr<Op> make_add(const Add& layer, const OpSpec& spec) {
  return std::make_unique<AddOp>(layer, spec);
}
std::unique_ptr<Op> make_concat(const OpSpec& spec) { return std::make_unique<ConcatOp>(spec); }
std::unique_ptr<Op> make_dropout(const Dropout& layer, const OpSpec& spec) {
  return std::make_unique<DropoutOp>(layer, spec);
}

}  // namespace convoy::onednn
