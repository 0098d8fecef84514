// Max, average and adaptive average pooling as lists of windows.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/amx/ops.h"
#include "kernels/amx/rows.h"

namespace convoy::amx {

namespace {

class PoolOp : public Op {
 public:
  PoolOp(const OpSpec& spec, Windows windows, std::vector<float> factors)
      : source_(layout_of(spec.inputs[0], spec.batch)),
        target_(layout_of(spec.output, spec.batch)),
        windows_(std::move(windows)),
        factors_(std::move(factors)) {
    if (const auto* max = std::get_if<MaxPool>(&spec.layer)) relu_ = max->relu;
    if (!spec.training) return;
    inverse_ = inverse(windows_);
    if (takes_largest()) {
      CHECK(windows_.taps <= kNobody, "{}: windows of at most {} positions", spec.name, kNobody);
      traits_.saved_bytes =
          std::size_t(target_.lots) * target_.planes * target_.positions * target_.lot * kLanes;
    }
  }

  const OpTraits& traits() const override { return traits_; }

  void forward(const ForwardArgs& args) override {
    const Bf16* x = value(args.inputs[0]);
    Bf16* y = value(args.output);
    if (takes_largest()) {
      auto* index = traits_.saved_bytes ? reinterpret_cast<std::uint8_t*>(args.saved) : nullptr;
      max_pool_forward(source_, target_, view(windows_), relu_, x, y, index);
    } else {
      average_pool_forward(source_, target_, view(windows_), factors_.data(), x, y);
    }
    leave_no_sums(target_, args.output);
  }

  void backward(const BackwardArgs& args) override {
    if (!args.input_gradients[0]) return;
    const Bf16* gradient = value(args.output_gradient);
    Bf16* to = value(args.input_gradients[0]);
    if (takes_largest()) {
      const auto* index = reinterpret_cast<const std::uint8_t*>(args.saved);
      max_pool_backward(source_, target_, view(inverse_), gradient, index, to);
    } else {
      average_pool_backward(source_, target_, view(inverse_), factors_.data(), gradient, to);
    }
  }

 private:
  bool takes_largest() const { return factors_.empty(); }
  static WindowView view(const Windows& w) {
    return {.begin = w.begin.data(), .references = w.references.data()};
  }

  Layout source_, target_;
  Windows windows_, inverse_;
  std::vector<float> factors_;  // of each target; empty: take the largest
  bool relu_ = false;
  OpTraits traits_;
};

// 1 / the number of positions that count, for each target.
std::vector<float> average_factors(const AveragePool& pool, const Shape& in, const Shape& out) {
  const auto extent = [&](int at, int size) {
    int first = at * pool.stride - pool.padding,
        last = std::min(first + pool.kernel, size + pool.padding);
    if (!pool.count_padding) {
      first = std::max(first, 0);
      last = std::min(last, size);
    }
    return last - first;
  };
  std::vector<float> factors;
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      const int count = extent(y, in.height) * extent(x, in.width);
      factors.push_back(count > 0 ? 1.0f / float(count) : 0.0f);
    }
  }
  return factors;
}

}  // namespace

std::unique_ptr<Op> make_pool(const OpSpec& spec) {
  const Shape in = spec.inputs[0], out = spec.output;
  WindowSpec window{
      .height = in.height, .width = in.width, .out_height = out.height, .out_width = out.width};
  if (const auto* max = std::get_if<MaxPool>(&spec.layer)) {
    window.kernel = max->kernel;
    window.stride = max->stride;
    window.padding = max->padding;
    return std::make_unique<PoolOp>(spec, sliding_windows(window), std::vector<float>{});
  }
  if (const auto* average = std::get_if<AveragePool>(&spec.layer)) {
    window.kernel = average->kernel;
    window.stride = average->stride;
    window.padding = average->padding;
    return std::make_unique<PoolOp>(spec, sliding_windows(window),
                                    average_factors(*average, in, out));
  }
  Windows windows = adaptive_windows(in.height, in.width, out.height, out.width);
  std::vector<float> factors;
  for (int t = 0; t < windows.targets; ++t)
    factors.push_back(1.0f / float(windows.begin[t + 1] - windows.begin[t]));
  return std::make_unique<PoolOp>(spec, std::move(windows), std::move(factors));
}

}  // namespace convoy::amx
