#include "kernels/amx/product_way.h"

#include <algorithm>

#include "base/clock.h"
#include "kernels/amx/ops.h"
#include "kernels/amx/winograd.h"
#include "kernels/parallel.h"

namespace convoy::amx {

namespace {

float* floats(std::byte* p) { return reinterpret_cast<float*>(p); }

// Times both halves of a backward pass, where somebody wants to know.
class Halves {
 public:
  explicit Halves(BackwardTimes* times) : times_(times), start_(times ? now_s() : 0) {}
  void weights_done() { add(&BackwardTimes::weights_s); }
  void data_done() { add(&BackwardTimes::data_s); }

 private:
  void add(double BackwardTimes::*half) {
    if (!times_) return;
    const double now = now_s();
    times_->*half += now - start_;
    start_ = now;
  }
  BackwardTimes* times_;
  double start_;
};

// Which target positions read which source positions, as far as the tiles see it.
Windows windows_of(const OpSpec& spec, const ProductForm& form) {
  if (form.dense) return whole_window(form.columns ? 1 : int(spec.inputs[0].area()));
  if (!form.columns) return sliding_windows(window_of(spec));
  return sliding_windows({.height = spec.output.height,
                          .width = spec.output.width,
                          .out_height = spec.output.height,
                          .out_width = spec.output.width});
}

// The same, as the weight gradients see it.
Slide slide_of(const OpSpec& spec, const ProductForm& form) {
  const Shape in = spec.inputs[0], out = spec.output;
  if (form.dense && form.columns) return {};
  if (form.dense) {
    return {.height = in.height,
            .width = in.width,
            .kernel_height = in.height,
            .kernel_width = in.width};
  }
  if (form.columns) {
    return {.height = out.height,
            .width = out.width,
            .out_height = out.height,
            .out_width = out.width,
            .columns = true};
  }
  const auto& c = std::get<Convolution>(spec.layer);
  return {.height = in.height,
          .width = in.width,
          .out_height = out.height,
          .out_width = out.width,
          .kernel_height = c.kernel,
          .kernel_width = c.kernel,
          .stride = c.stride,
          .padding = c.padding};
}

// Moving weights needs room for their gradients. Zeros between groups are not to move.
std::size_t moving_bytes(const WaySpec& way) {
  const bool moves = way.spec.training && way.form.groups == 1;
  return moves ? way.form.shape.size() * sizeof(float) : 0;
}

WeightGradient weight_gradient_of(const ProductGradients& g, std::size_t moving_at) {
  return {.sums = g.update ? floats(g.scratch + moving_at) : g.weight_gradient,
          .update = g.update,
          .stored = g.stored};
}

SourceMaking making_of(const Making* how, const SourceReads& reads) {
  return {.how = how, .until = reads.until.data(), .from = reads.from.data()};
}

// Tiles of packed weights, for everything.
class ByTiles : public ProductWay {
 public:
  explicit ByTiles(const WaySpec& way)
      : shape_(way.form.shape), column_plan_(way.columns), slots_(threads()) {
    const Windows windows = windows_of(way.spec, way.form);
    forward_plan_ = plan_tiles(windows, way.target.lot);
    forward_ = product_of(way.source, way.target, forward_plan_);
    if (way.spec.training && !way.form.columns)
      forward_reads_ = source_reads(forward_plan_, way.source, way.target);
    Cutter scratch;
    pack_at_ = scratch.take(shape_.size() * sizeof(Bf16));
    if (column_plan_)
      column_buffers_at_ = scratch.take(column_buffer_size(forward_) * sizeof(Bf16));
    if (way.spec.training) {
      if (way.spec.wants_input_gradient && !way.form.columns) {
        backward_plan_ = plan_tiles(inverse(windows), way.target.lot);
        backward_ = product_of(way.target, way.source, backward_plan_);
        backward_reads_ = source_reads(backward_plan_, way.target, way.source);
      }
      weights_ =
          plan_weight_product(way.source, way.target, shape_, slide_of(way.spec, way.form), slots_);
      turned_at_ = scratch.take(weights_.turned_size() * sizeof(Bf16));
      moving_at_ = scratch.take(moving_bytes(way));
    }
    scratch_bytes_ = scratch.size();
  }

  std::size_t scratch_bytes() const override { return scratch_bytes_; }

  void forward(const ProductValues& v) override {
    use_columns(v.source, value(v.scratch + column_buffers_at_));
    Bf16* pack = value(v.scratch + pack_at_);
    pack_forward(shape_, v.stored, pack);
    run_product(forward_, v.source, pack, v.target, v.finish, making_of(v.making, forward_reads_));
  }

  void backward(const ProductGradients& g) override {
    Halves halves(g.times);
    if (g.source_gradient) {
      Bf16* pack = value(g.scratch + pack_at_);
      pack_backward(shape_, g.stored, pack);
      run_product(backward_, g.target_gradient, pack, g.source_gradient, g.finish,
                  making_of(g.making, backward_reads_));
      halves.data_done();
    } else if (g.making) {
      make_value(weights_.target, *g.making);
    }
    use_columns(g.source, nullptr);
    run_weight_product(weights_, g.source, g.target_gradient, value(g.scratch + turned_at_),
                       weight_gradient_of(g, moving_at_));
    halves.weights_done();
  }

 private:
  TileProduct product_of(const Layout& source, const Layout& target, const TilePlan& plan) const {
    return {.source = source,
            .target = target,
            .taps = shape_.taps,
            .blocks = plan.blocks.data(),
            .runs = plan.runs.data(),
            .steps = plan.steps.data(),
            .joins = plan.joins.data(),
            .slots = slots_};
  }

  void use_columns(const Bf16* padded, Bf16* buffers) {
    if (!column_plan_) return;
    columns_ = column_plan_->over(padded);
    forward_.columns = weights_.columns = &columns_;
    forward_.column_buffers = buffers;
  }

  WeightShape shape_;
  const ColumnPlan* column_plan_;
  int slots_;
  TilePlan forward_plan_, backward_plan_;
  TileProduct forward_, backward_;
  SourceReads forward_reads_, backward_reads_;
  WeightProduct weights_;
  Columns columns_;
  std::size_t pack_at_ = 0, column_buffers_at_ = 0, turned_at_ = 0, moving_at_ = 0,
              scratch_bytes_ = 0;
};

// A dense layer on one lot of images: each weight is used once, hence not packed.
class ByStoredWeights : public ProductWay {
 public:
  explicit ByStoredWeights(const WaySpec& way)
      : plan_(plan_tiles(windows_of(way.spec, way.form), way.target.lot)),
        forward_{.source = way.source,
                 .target = way.target,
                 .taps = way.form.shape.taps,
                 .blocks = plan_.blocks.data(),
                 .runs = plan_.runs.data(),
                 .steps = plan_.steps.data(),
                 .joins = plan_.joins.data(),
                 .slots = threads()},
        scratch_bytes_(way.spec.training ? dense_turned_size(way.target) * sizeof(Bf16) : 0) {}

  bool finishes_all() const override { return false; }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }

  void forward(const ProductValues& v) override {
    run_dense_forward(forward_, v.source, v.stored, v.target, v.finish);
  }

  void backward(const ProductGradients& g) override {
    run_dense_backward({.source = forward_.source,
                        .target = forward_.target,
                        .taps = forward_.taps,
                        .slots = forward_.slots},
                       {.source = g.source,
                        .target_gradient = g.target_gradient,
                        .stored = g.stored,
                        .turned = value(g.scratch),
                        .source_gradient = g.source_gradient,
                        .weight_gradient = g.weight_gradient,
                        .update = g.update});
  }

 private:
  TilePlan plan_;
  TileProduct forward_;
  std::size_t scratch_bytes_;
};

WinogradProduct winograd_of(const OpSpec& spec, int batch) {
  const Shape in = spec.inputs[0], out = spec.output;
  return {.source = layout_of(in, batch),
          .target = layout_of(out, batch),
          .height = in.height,
          .width = in.width,
          .out_height = out.height,
          .out_width = out.width,
          .before = std::get<Convolution>(spec.layer).padding,
          .slots = threads()};
}

// Whether the layer is one that Winograd's algorithm carries out, and sooner.
bool takes_winograd(const OpSpec& spec, const ProductForm& form) {
  if (form.dense || form.columns || form.groups > 1 || spec.last) return false;
  const auto& c = std::get<Convolution>(spec.layer);
  // For all batches alike, the last of an epoch too.
  const int batch = spec.tuning_batch > 0 ? spec.tuning_batch : spec.batch;
  return c.kernel == 3 && c.stride == 1 && winograd_pays(winograd_of(spec, batch));
}

class ByWinograd : public ProductWay {
 public:
  explicit ByWinograd(const WaySpec& way)
      : shape_(way.form.shape),
        forward_(winograd_of(way.spec, way.spec.batch)),
        backward_(winograd_backward(forward_)) {
    Cutter scratch;
    weights_at_ = scratch.take(winograd_weights_size(shape_) * sizeof(float));
    std::size_t rows = winograd_scratch_size(forward_);
    if (way.spec.training) {
      rows = std::max(
          {rows, winograd_scratch_size(backward_), winograd_gradient_scratch_size(forward_)});
      forward_reads_ = source_reads(forward_);
      backward_reads_ = source_reads(backward_);
    }
    rows_at_ = scratch.take(rows * sizeof(float));
    moving_at_ = scratch.take(moving_bytes(way));
    scratch_bytes_ = scratch.size();
  }

  std::size_t scratch_bytes() const override { return scratch_bytes_; }

  void forward(const ProductValues& v) override {
    float* weights = floats(v.scratch + weights_at_);
    make_winograd_weights(shape_, v.stored, false, weights);
    run_winograd(forward_, v.source, weights, v.target, v.finish, floats(v.scratch + rows_at_),
                 making_of(v.making, forward_reads_));
  }

  void backward(const ProductGradients& g) override {
    float* weights = floats(g.scratch + weights_at_);
    float* rows = floats(g.scratch + rows_at_);
    Halves halves(g.times);
    if (g.source_gradient) {
      make_winograd_weights(shape_, g.stored, true, weights);
      run_winograd(backward_, g.target_gradient, weights, g.source_gradient, g.finish, rows,
                   making_of(g.making, backward_reads_));
      halves.data_done();
    } else if (g.making) {
      make_value(forward_.target, *g.making);
    }
    run_winograd_gradient(forward_, g.source, g.target_gradient, rows,
                          weight_gradient_of(g, moving_at_));
    halves.weights_done();
  }

 private:
  WeightShape shape_;
  WinogradProduct forward_, backward_;
  SourceReads forward_reads_, backward_reads_;
  std::size_t weights_at_ = 0, rows_at_ = 0, moving_at_ = 0, scratch_bytes_ = 0;
};

}  // namespace

WindowSpec window_of(const OpSpec& spec) {
  const auto& c = std::get<Convolution>(spec.layer);
  return {.height = spec.inputs[0].height,
          .width = spec.inputs[0].width,
          .out_height = spec.output.height,
          .out_width = spec.output.width,
          .kernel = c.kernel,
          .stride = c.stride,
          .padding = c.padding};
}

std::unique_ptr<ProductWay> choose_way(const WaySpec& way) {
  if (way.form.dense && way.target.lots == 1) return std::make_unique<ByStoredWeights>(way);
  if (takes_winograd(way.spec, way.form)) return std::make_unique<ByWinograd>(way);
  return std::make_unique<ByTiles>(way);
}

}  // namespace convoy::amx
