// Local response norm, row by row in f32: y = x * d ^ -beta with d = k + alpha / size * (sum of x *
// x over `size` neighbouring channels). Values in the layout of layout.h. No network of the zoo
// uses it, so it is plain.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/amx/ops.h"
#include "kernels/parallel.h"

namespace convoy::amx {

namespace {

float widen(Bf16 v) {
  const std::uint32_t bits = std::uint32_t(v) << 16;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

Bf16 narrow(float v) {
  std::uint32_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  return Bf16((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

class LocalResponseNormOp : public Op {
 public:
  explicit LocalResponseNormOp(const OpSpec& spec)
      : layout_(layout_of(spec.output, spec.batch)),
        norm_(std::get<LocalResponseNorm>(spec.layer)) {
    traits_ = {.reads_inputs = spec.training};
  }
  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    for_rows([&](std::size_t row, Buffers& b) {
      read(value(args.inputs[0]), row, b.x);
      denominators(b);
      for (int c = 0; c < layout_.channels; ++c)
        b.result[c] = b.x[c] * std::pow(b.d[c], -norm_.beta);
      write(b.result, row, value(args.output));
    });
    leave_no_sums(layout_, args.output);
  }

  // dx_i = g_i d_i^-beta - 2 alpha beta / size * x_i * sum over the j that i is a neighbour of, of
  // g_j x_j d_j^(-beta-1).
  void backward(const BackwardArgs& args) override {
    if (!args.input_gradients[0]) return;
    for_rows([&](std::size_t row, Buffers& b) {
      read(value(args.inputs[0]), row, b.x);
      read(value(args.output_gradient), row, b.g);
      denominators(b);
      for (int c = 0; c < layout_.channels; ++c)
        b.t[c] = b.g[c] * b.x[c] * std::pow(b.d[c], -norm_.beta - 1);
      for (int c = 0; c < layout_.channels; ++c) {
        float sum = 0;
        for (int j = std::max(0, c - after()); j <= std::min(layout_.channels - 1, c + before());
             ++j)
          sum += b.t[j];
        b.result[c] = b.g[c] * std::pow(b.d[c], -norm_.beta) -
                      2 * norm_.alpha * norm_.beta / float(norm_.size) * b.x[c] * sum;
      }
      write(b.result, row, value(args.input_gradients[0]));
    });
  }

 private:
  struct Buffers {
    std::vector<float> x, g, d, t, result;
    explicit Buffers(int lanes) : x(lanes), g(lanes), d(lanes), t(lanes), result(lanes) {}
  };

  int before() const { return norm_.size / 2; }
  int after() const { return (norm_.size - 1) / 2; }

  void denominators(Buffers& b) const {
    for (int c = 0; c < layout_.channels; ++c) {
      float sum = 0;
      for (int j = std::max(0, c - before()); j <= std::min(layout_.channels - 1, c + after()); ++j)
        sum += b.x[j] * b.x[j];
      b.d[c] = norm_.k + norm_.alpha / float(norm_.size) * sum;
    }
  }

  // Rows are counted lot by lot; the planes of a lot hold the channels of a row.
  template <typename Body>
  void for_rows(Body&& body) const {
    const std::size_t rows = std::size_t(layout_.lots) * layout_.blocks * kLanes;
    parallel_for(rows, 32, [&](std::size_t first, std::size_t last) {
      Buffers buffers(layout_.lanes());
      for (std::size_t row = first; row < last; ++row) body(row, buffers);
    });
  }
  std::size_t place(std::size_t row, int channel) const {
    const std::size_t per_lot = std::size_t(layout_.blocks) * kLanes;
    return row / per_lot * layout_.lot_size() + channel / kLanes * layout_.plane_size() +
           row % per_lot * kLanes + channel % kLanes;
  }
  void read(const Bf16* from, std::size_t row, std::vector<float>& to) const {
    for (int c = 0; c < layout_.channels; ++c) to[c] = widen(from[place(row, c)]);
  }
  void write(const std::vector<float>& from, std::size_t row, Bf16* to) const {
    for (int c = 0; c < layout_.lanes(); ++c)
      to[place(row, c)] = c < layout_.channels ? narrow(from[c]) : Bf16(0);
  }

  Layout layout_;
  LocalResponseNorm norm_;
  OpTraits traits_;
};

}  // namespace

std::unique_ptr<Op> make_local_response_norm(const OpSpec& spec) {
  return std::make_unique<LocalResponseNormOp>(spec);
}

}  // namespace convoy::amx
