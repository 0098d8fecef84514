// Pooling, window by window, one block of channels (B lanes) at a time: every inner loop runs over
// lanes and vectorises.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/onednn/engine.h"
#include "kernels/onednn/ops.h"
#include "kernels/onednn/pool_planes.h"
#include "kernels/parallel.h"

namespace convoy::onednn {
namespace {

// Rows or columns [begin, end) of the input that output position `at` covers.
struct Window {
  int begin, end, first;  // first: where the window begins with padding counted (may be negative)
};

Window pool_window(int at, int kernel, int stride, int padding, int input) {
  const int first = at * stride - padding;
  return {std::max(first, 0), std::min(first + kernel, input), first};
}

Window adaptive_window(int at, int input, int output) {
  const int begin = at * input / output;
  return {begin, ((at + 1) * input + output - 1) / output, begin};
}

// Calls body(in offset of plane, out offset of plane, lanes of the output) for each (sample, block
// of channels).
template <typename Body>
void each_plane(const OpSpec& spec, Body&& body) {
  const Shape& in = spec.inputs[0];
  const Shape& out = spec.output;
  const int lanes = block();
  const std::size_t blocks = std::size_t(out.channels + lanes - 1) / lanes;
  const std::size_t in_sample = value_floats(in), out_sample = value_floats(out);
  CHECK(is_blocked(in), "pooling over a vector of {} features", in.channels);
  parallel_for(blocks * spec.batch, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t n = i / blocks, b = i % blocks;
      const int real = is_blocked(out) ? lanes : std::min(lanes, out.channels - int(b) * lanes);
      body(n * in_sample + b * in.area() * lanes, n * out_sample + b * out.area() * lanes, i, real);
    }
  });
}

template <int B>
class MaxPoolOp : public Op {
 public:
  MaxPoolOp(const MaxPool& layer, const OpSpec& spec) : spec_(spec) {
    CHECK(layer.kernel * layer.kernel < kCut, "max pooling with a {0}x{0} window", layer.kernel);
    const Shape& in = spec.inputs[0];
    const Shape& out = spec.output;
    const auto covers = [&](int input, int output) {
      return layer.stride == layer.kernel && layer.padding == 0 && output * layer.stride == input;
    };
    plane_ = {.in_height = in.height,
              .in_width = in.width,
              .out_height = out.height,
              .out_width = out.width,
              .kernel = layer.kernel,
              .stride = layer.stride,
              .padding = layer.padding,
              .relu = layer.relu,
              .tiles = covers(in.height, out.height) && covers(in.width, out.width)};
    const std::size_t blocks = std::size_t(out.channels + B - 1) / B;
    if (spec.training) traits_.saved_bytes = blocks * B * out.area() * spec.batch;
  }
  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    const float* in = reinterpret_cast<const float*>(args.inputs[0]);
    float* out = reinterpret_cast<float*>(args.output);
    auto* where = reinterpret_cast<std::uint8_t*>(args.saved);
    each_plane(spec_, [&](std::size_t in_at, std::size_t out_at, std::size_t plane, int lanes) {
      std::uint8_t* record = spec_.training ? where + plane * spec_.output.area() * B : nullptr;
      max_pool_forward<B>(plane_, in + in_at, out + out_at, record, lanes);
    });
  }

  void backward(const BackwardArgs& args) override {
    if (args.input_gradients[0] == nullptr) return;
    const auto* gradient = reinterpret_cast<const float*>(args.output_gradient);
    auto* in = reinterpret_cast<float*>(args.input_gradients[0]);
    const auto* where = reinterpret_cast<const std::uint8_t*>(args.saved);
    each_plane(spec_, [&](std::size_t in_at, std::size_t out_at, std::size_t plane, int lanes) {
      max_pool_backward<B>(plane_, in + in_at, gradient + out_at,
                           where + plane * spec_.output.area() * B, lanes);
    });
  }

 private:
  OpSpec spec_;
  PoolPlane plane_{};
  OpTraits traits_;
};

// How an average's window lies and what it divides by: the one difference between plain and
// adaptive pooling.
struct Averaging {
  bool adaptive = false;
  AveragePool pool;

  Window window(int at, int input, int output) const {
    return adaptive ? adaptive_window(at, input, output)
                    : pool_window(at, pool.kernel, pool.stride, pool.padding, input);
  }
  // Padded positions count up to the far edge of the padding, as in PyTorch.
  int extent(const Window& w, int input) const {
    if (adaptive || !pool.count_padding) return w.end - w.begin;
    return std::min(w.first + pool.kernel, input + pool.padding) - w.first;
  }
};

template <int B>
class AveragePoolOp : public Op {
 public:
  AveragePoolOp(const Averaging& averaging, const OpSpec& spec)
      : averaging_(averaging), spec_(spec) {}
  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    const float* in = reinterpret_cast<const float*>(args.inputs[0]);
    float* out = reinterpret_cast<float*>(args.output);
    each_plane(spec_, [&](std::size_t in_at, std::size_t out_at, std::size_t, int lanes) {
      each_window([&](std::size_t at, const Window& rows, const Window& columns, float share) {
        alignas(64) float sum[B] = {};
        each_tap(rows, columns, [&](std::size_t tap) {
          for (int lane = 0; lane < B; ++lane) sum[lane] += in[in_at + tap * B + lane];
        });
        for (int lane = 0; lane < lanes; ++lane) out[out_at + at * B + lane] = sum[lane] * share;
      });
    });
  }

  void backward(const BackwardArgs& args) override {
    if (args.input_gradients[0] == nullptr) return;
    const auto* gradient = reinterpret_cast<const float*>(args.output_gradient);
    auto* in = reinterpret_cast<float*>(args.input_gradients[0]);
    each_plane(spec_, [&](std::size_t in_at, std::size_t out_at, std::size_t, int lanes) {
      std::memset(in + in_at, 0, spec_.inputs[0].area() * B * sizeof(float));
      each_window([&](std::size_t at, const Window& rows, const Window& columns, float share) {
        alignas(64) float given[B] = {};
        for (int lane = 0; lane < lanes; ++lane)
          given[lane] = gradient[out_at + at * B + lane] * share;
        each_tap(rows, columns, [&](std::size_t tap) {
          for (int lane = 0; lane < B; ++lane) in[in_at + tap * B + lane] += given[lane];
        });
      });
    });
  }

 private:
  template <typename Body>
  void each_window(Body&& body) const {
    const Shape& in = spec_.inputs[0];
    const Shape& out = spec_.output;
    for (int y = 0; y < out.height; ++y) {
      const Window rows = averaging_.window(y, in.height, out.height);
      for (int x = 0; x < out.width; ++x) {
        const Window columns = averaging_.window(x, in.width, out.width);
        const int divisor =
            averaging_.extent(rows, in.height) * averaging_.extent(columns, in.width);
        body(std::size_t(y) * out.width + x, rows, columns, 1.0f / float(divisor));
      }
    }
  }

  template <typename Body>
  void each_tap(const Window& rows, const Window& columns, Body&& body) const {
    for (int r = rows.begin; r < rows.end; ++r)
      for (int c = columns.begin; c < columns.end; ++c)
        body(std::size_t(r) * spec_.inputs[0].width + c);
  }

  Averaging averaging_;
  OpSpec spec_;
  OpTraits traits_;
};

std::unique_ptr<Op> make_average(const Averaging& averaging, const OpSpec& spec) {
  if (block() == 16) return std::make_unique<AveragePoolOp<16>>(averaging, spec);
  return std::make_unique<AveragePoolOp<8>>(averaging, spec);
}

}  // namespace

std::unique_ptr<Op> make_max_pool(const MaxPool& layer, const OpSpec& spec) {
  if (block() == 16) return std::make_unique<MaxPoolOp<16>>(layer, spec);
  return std::make_unique<MaxPoolOp<8>>(layer, spec);
}

std::unique_ptr<Op> make_average_pool(const AveragePool& layer, const OpSpec& spec) {
  return make_average({.adaptive = false, .pool = layer}, spec);
}

std::unique_ptr<Op> make_adaptive_average_pool(const OpSpec& spec) {
  return make_average({.adaptive = true, .pool = {}}, spec);
}

}  // namespace convoy::onednn
