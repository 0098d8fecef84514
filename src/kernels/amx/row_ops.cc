// ReLU, add, concat and dropout.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "kernels/amx/ops.h"
#include "kernels/amx/rows.h"
#include "kernels/parallel.h"

namespace convoy::amx {

namespace {

class ReluOp : public Op {
 public:
  explicit ReluOp(const OpSpec& spec) : layout_(layout_of(spec.output, spec.batch)) {
    traits_ = {.reads_output = spec.training, .in_place = true, .gradient_in_place = true};
  }
  const OpTraits& traits() const override { return traits_; }
  void forward(const ForwardArgs& args) override {
    relu_forward(layout_, value(args.inputs[0]), value(args.output));
    leave_no_sums(layout_, args.output);
  }
  void backward(const BackwardArgs& args) override {
    if (!args.input_gradients[0]) return;
    relu_backward(layout_, value(args.output), value(args.output_gradient),
                  value(args.input_gradients[0]));
  }

 private:
  Layout layout_;
  OpTraits traits_;
};

class AddOp : public Op {
 public:
  explicit AddOp(const OpSpec& spec)
      : layout_(layout_of(spec.output, spec.batch)), relu_(std::get<Add>(spec.layer).relu) {
    traits_ = {
        .reads_output = spec.training && relu_, .spoils_gradient = relu_, .passes_gradient = true};
  }
  const OpTraits& traits() const override { return traits_; }
  void forward(const ForwardArgs& args) override {
    add_values(layout_, value(args.inputs[0]), value(args.inputs[1]), relu_, value(args.output));
    leave_no_sums(layout_, args.output);
  }
  void backward(const BackwardArgs& args) override {
    if (!relu_) return;
    relu_backward(layout_, value(args.output), value(args.output_gradient),
                  value(args.output_gradient));
  }

 private:
  Layout layout_;
  bool relu_;
  OpTraits traits_;
};

// Which lanes of which planes make up the planes of a value.
struct Regrouping {
  std::vector<std::int32_t> begin{0};
  std::vector<LanePiece> pieces;

  // The next plane takes channels [first, first + 32) of the inputs laid side by side at `offsets`
  // (ascending, ends with the total).
  void add_plane(int first, const std::vector<int>& offsets) {
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      for (int plane = 0; offsets[i] + plane * kLanes < offsets[i + 1]; ++plane) {
        const int at = offsets[i] + plane * kLanes -
                       first;  // lane of the target where this source plane begins
        std::uint32_t lanes = 0;
        for (int lane = 0; lane < kLanes; ++lane) {
          const int channel = first + lane;
          if (lane >= at && lane < at + kLanes && channel < offsets[i + 1] && channel >= offsets[i])
            lanes |= 1u << lane;
        }
        if (lanes)
          pieces.push_back({.source = int(i), .plane = plane, .rotate = at, .lanes = lanes});
      }
    }
    begin.push_back(std::int32_t(pieces.size()));
  }
};

class ConcatOp : public Op {
 public:
  explicit ConcatOp(const OpSpec& spec) : target_(layout_of(spec.output, spec.batch)) {
    std::vector<int> offsets{0};
    for (const Shape& s : spec.inputs) {
      sources_.push_back(layout_of(s, spec.batch));
      offsets.push_back(offsets.back() + s.channels);
    }
    for (int plane = 0; plane < target_.planes; ++plane)
      together_.add_plane(plane * kLanes, offsets);
    for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
      // Seen from input i, the output is one source that begins -offset channels away.
      Regrouping apart;
      for (int plane = 0; plane < sources_[i].planes; ++plane) {
        apart.add_plane(plane * kLanes, {-offsets[i], offsets.back() - offsets[i]});
        for (std::int32_t p = apart.begin[plane]; p < apart.begin[plane + 1]; ++p) {
          const int left = spec.inputs[i].channels - plane * kLanes;
          if (left < kLanes) apart.pieces[p].lanes &= (1u << left) - 1;
        }
      }
      apart_.push_back(std::move(apart));
    }
  }
  const OpTraits& traits() const override { return traits_; }
  void forward(const ForwardArgs& args) override {
    std::vector<SourceValue> from;
    for (std::size_t i = 0; i < sources_.size(); ++i)
      from.push_back({value(args.inputs[i]), sources_[i].planes});
    regroup(target_, together_.begin.data(), together_.pieces.data(), from.data(),
            value(args.output));
    leave_no_sums(target_, args.output);
  }
  void backward(const BackwardArgs& args) override {
    const SourceValue from{value(args.output_gradient), target_.planes};
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (!args.input_gradients[i]) continue;
      regroup(sources_[i], apart_[i].begin.data(), apart_[i].pieces.data(), &from,
              value(args.input_gradients[i]));
    }
  }

 private:
  Layout target_;
  std::vector<Layout> sources_;
  Regrouping together_;
  std::vector<Regrouping> apart_;
  OpTraits traits_;
};

// Sixteen random bits decide a number: 8 numbers per call of Philox, keyed by (seed, layer, epoch,
// sample), counted by position and plane, so that a sample meets the same mask whatever its batch.
class DropoutOp : public Op {
 public:
  explicit DropoutOp(const OpSpec& spec)
      : layout_(layout_of(spec.output, spec.batch)),
        rate_(std::get<Dropout>(spec.layer).rate),
        training_(spec.training),
        seed_(spec.seed) {
    for (const char c : spec.name) salt_ = (salt_ ^ std::uint8_t(c)) * 16777619u;
    traits_ = {.in_place = true, .gradient_in_place = true};
    if (training_) traits_.saved_bytes = layout_.size() / kLanes * sizeof(std::uint32_t);
  }
  const OpTraits& traits() const override { return traits_; }
  void forward(const ForwardArgs& args) override {
    if (!training_) {
      if (args.output != args.inputs[0])
        std::copy_n(args.inputs[0], layout_.size() * sizeof(Bf16), args.output);
    } else {
      auto* bits = reinterpret_cast<std::uint32_t*>(args.saved);
      draw(args.key, bits);
      scale_where(layout_, bits, scale(), value(args.inputs[0]), value(args.output));
    }
    leave_no_sums(layout_, args.output);
  }
  void backward(const BackwardArgs& args) override {
    if (!args.input_gradients[0]) return;
    scale_where(layout_, reinterpret_cast<const std::uint32_t*>(args.saved), scale(),
                value(args.output_gradient), value(args.input_gradients[0]));
  }

 private:
  float scale() const { return rate_ < 1 ? 1 / (1 - rate_) : 0.0f; }

  void draw(const StepKey& key, std::uint32_t* bits) const {
    const std::size_t rows = layout_.size() / kLanes,
                      rows_per_plane = layout_.plane_size() / kLanes;
    parallel_for(rows, 64, [&](std::size_t first, std::size_t last) {
      for (std::size_t row = first; row < last; ++row) {
        const std::size_t plane = row / rows_per_plane, at = row % rows_per_plane;
        const std::size_t image = plane / layout_.planes * layout_.lot + at % layout_.lot;
        const std::uint32_t sample =
            image < key.samples.size() ? key.samples[image] : std::uint32_t(image);
        const std::uint32_t place =
            std::uint32_t(at / layout_.lot * layout_.planes + plane % layout_.planes);
        bits[row] = draw_row(sample, key.epoch, place);
      }
    });
  }

  std::uint32_t draw_row(std::uint32_t sample, std::uint32_t epoch, std::uint32_t place) const {
    const auto threshold = std::uint32_t(rate_ * 65536.0f);
    std::uint32_t bits = 0;
    for (std::uint32_t quarter = 0; quarter < 4; ++quarter) {
      const auto words = philox(
          {sample, epoch, place * 4 + quarter, salt_},
          {std::uint32_t(seed_), std::uint32_t(seed_ >> 32) ^ std::uint32_t(Purpose::dropout)});
      for (std::uint32_t w = 0; w < 4; ++w) {
        bits |= std::uint32_t((words[w] & 0xffff) >= threshold) << (quarter * 8 + w * 2);
        bits |= std::uint32_t((words[w] >> 16) >= threshold) << (quarter * 8 + w * 2 + 1);
      }
    }
    return bits;
  }

  Layout layout_;
  float rate_;
  bool training_;
  std::uint64_t seed_;
  std::uint32_t salt_ = 2166136261u;
  OpTraits traits_;
};

}  // namespace

std::unique_ptr<Op> make_relu(const OpSpec& spec) { return std::make_unique<ReluOp>(spec); }
std::unique_ptr<Op> make_add(const OpSpec& spec) { return std::make_unique<AddOp>(spec); }
std::unique_ptr<Op> make_concat(const OpSpec& spec) { return std::make_unique<ConcatOp>(spec); }
std::unique_ptr<Op> make_dropout(const OpSpec& spec) { return std::make_unique<DropoutOp>(spec); }

}  // namespace convoy::amx
