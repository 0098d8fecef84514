#include "nn/graph.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"

namespace convoy {

Graph::Graph(const Network& network, Parameters& parameters, const Family& family,
             const GraphOptions& options)
    : family_(family),
      options_(options),
      image_(network.input_shape()),
      plan_(plan_layers(network, family)),
      reached_(network.reached_by_backward()),
      output_scale_(network.output_scale()) {
  const std::size_t values = network.nodes().size();
  value_shape_.resize(values);
  value_buffer_.assign(values, -1);
  gradient_buffer_.assign(values, -1);
  gradient_time_.assign(values, 0);
  for (const PlannedLayer& layer : plan_) value_shape_[layer.output] = layer.shape;
  output_ = network.output().id;
  bind_ops(network, parameters);
  plan_values();
  if (options_.training) {
    plan_gradients();
    if (options_.leaving) plan_leaving();
  }
  arena_bytes_ = place_buffers(buffers_);
  logits_.resize(std::size_t(options.batch) * network.classes());
}

Graph::~Graph() = default;

void Graph::bind_ops(const Network& network, Parameters& parameters) {
  for (const PlannedLayer& layer : plan_) {
    if (std::holds_alternative<Input>(layer.layer)) continue;
    OpSpec spec =
        op_spec(network, plan_, layer, options_.batch, options_.tuning_batch, options_.training);
    spec.seed = options_.seed;
    bool has_parameters = false;
    ArenaRange weight;
    const auto give = [&](Role role, const float*& value, float*& gradient) {
      const Parameter* parameter = parameters.find(layer.node, role);
      if (parameter == nullptr) return;
      value = parameters.values().data() + parameter->begin;
      gradient = parameters.gradients().data() + parameter->begin;
      if (role == Role::weight) weight = {parameter->begin, parameter->end};
      has_parameters = true;
    };
    const bool norm = std::holds_alternative<BatchNorm>(layer.layer);
    give(norm ? Role::norm_weight : Role::weight, spec.weight, spec.weight_gradient);
    give(norm ? Role::norm_bias : Role::bias, spec.bias, spec.bias_gradient);
    const RunningStatistics running = parameters.running_statistics(layer.node);
    spec.running_mean = running.mean;
    spec.running_variance = running.variance;
    if (options_.training) spec.exchange = options_.exchange;
    Step step;
    step.layer = &layer;
    step.op = family_.bind(spec);
    step.has_parameters = has_parameters;
    step.weight = weight;
    step.frozen = network.node(layer.node).frozen;
    steps_.push_back(std::move(step));
    timings_.push_back({.node = layer.node, .split = {}});
  }
}

std::size_t Graph::bytes_of(NodeId value) const {
  const Shape& shape = value_shape_[value];
  const std::size_t plain = shape.count() * options_.batch * sizeof(float);
  const bool is_input = value == plan_.front().output;
  if (is_input || value == output_) return plain;
  return family_.value_bytes(shape, options_.batch);
}

int Graph::new_buffer(std::size_t bytes, int first, int last) {
  buffers_.push_back({.bytes = bytes, .first = first, .last = last});
  return int(buffers_.size()) - 1;
}

void Graph::plan_values() {
  std::vector<int> last_use(value_shape_.size(), 0);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const OpTraits& traits = steps_[i].op->traits();
    const bool again = options_.training && traits.reads_inputs;
    for (NodeId value : steps_[i].layer->inputs)
      last_use[value] = std::max(last_use[value], again ? backward_time(i) : int(i));
    NodeId output = steps_[i].layer->output;
    last_use[output] = std::max(
        last_use[output], options_.training && traits.reads_output ? backward_time(i) : int(i));
  }
  last_use[output_] = std::max(last_use[output_], int(steps_.size()));

  const NodeId image = plan_.front().output;
  value_buffer_[image] = new_buffer(bytes_of(image), 0, last_use[image]);
  std::size_t scratch_bytes = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    const OpTraits& traits = step.op->traits();
    const NodeId output = step.layer->output;
    for (NodeId value : step.layer->inputs) step.inputs.push_back(value_buffer_[value]);
    const NodeId first = step.layer->inputs[0];
    const bool alone = std::count(step.layer->inputs.begin(), step.layer->inputs.end(), first) == 1;
    if (traits.in_place && alone && first != image && output != output_ &&
        last_use[first] == int(i)) {
      step.output = step.inputs[0];
      buffers_[step.output].last = last_use[output];
      last_use[first] = last_use[output];
    } else {
      step.output = new_buffer(bytes_of(output), int(i), last_use[output]);
    }
    value_buffer_[output] = step.output;
    if (traits.saved_bytes > 0)
      step.saved =
          new_buffer(traits.saved_bytes, int(i), options_.training ? backward_time(i) : int(i));
    scratch_bytes = std::max(scratch_bytes, traits.scratch_bytes);
  }
  if (scratch_bytes > 0) scratch_ = new_buffer(scratch_bytes, 0, 2 * int(steps_.size()));
}

// Whether a gradient other than `value`'s lies in this buffer and is read after `time`.
bool Graph::others_need(int buffer, NodeId value, int time) const {
  for (std::size_t other = 0; other < gradient_buffer_.size(); ++other)
    if (NodeId(other) != value && gradient_buffer_[other] == buffer && gradient_time_[other] > time)
      return true;
  return false;
}

// Walks backward and decides, for each value, where its gradient lies. A value that several layers
// read gets the first contribution as it comes and the others added to it. Layers that only pass a
// gradient on (addition) cost no buffer: several values may share one, and a private copy is made
// only where one of them would change it too early.
void Graph::plan_gradients() {
  const int loss_time = int(steps_.size());
  for (std::size_t i = 0; i < steps_.size(); ++i)
    gradient_time_[steps_[i].layer->output] = backward_time(i);
  gradient_buffer_[output_] = new_buffer(bytes_of(output_), loss_time, gradient_time_[output_]);
  std::vector<int> writer(value_shape_.size(), -1);  // the step that wrote a value's gradient last,
                                                     // -1: not as its first input's
  for (std::size_t i = steps_.size(); i-- > 0;) {
    Step& step = steps_[i];
    const OpTraits& traits = step.op->traits();
    const NodeId output = step.layer->output;
    if (!reached_[output]) continue;
    const int time = backward_time(i);
    int buffer = gradient_buffer_[output];
    CHECK(buffer >= 0, "nobody reads the output of node {}", output);
    if (traits.spoils_gradient && others_need(buffer, output, time)) {
      step.copy_from = buffer;
      buffer = new_buffer(bytes_of(output), time, time);
    }
    step.output_gradient = buffer;
    if (writer[output] >= 0) take_sums(i, writer[output]);
    const bool reusable = traits.gradient_in_place && !others_need(buffer, output, time);
    for (std::size_t k = 0; k < step.layer->inputs.size(); ++k) {
      const NodeId input = step.layer->inputs[k];
      step.input_gradients.push_back(-1);
      if (!reached_[input]) continue;
      const int earlier = gradient_buffer_[input];
      if (traits.adds_gradient && k == 0 && earlier >= 0 && earlier != buffer &&
          !others_need(earlier, input, time)) {
        step.input_gradients.back() = earlier;
        step.add_to_gradient = true;
        writer[input] = int(i);
        continue;
      }
      int given = buffer;
      writer[input] = -1;
      if (!traits.passes_gradient && !(traits.passes_second && k == 1)) {
        if (!(reusable && k == 0)) given = new_buffer(bytes_of(input), time, time);
        step.input_gradients.back() = given;
        if (k == 0 && earlier < 0) writer[input] = int(i);
      }
      contribute(step, input, given, time);
    }
  }
}

// The sums that backward of a step can use are taken by the step that writes its gradient, if that
// one can.
void Graph::take_sums(std::size_t step, int writer) {
  const std::size_t bytes = steps_[step].op->traits().sums_bytes;
  if (bytes == 0 || !steps_[writer].op->traits().takes_sums) return;
  steps_[writer].takes_for = int(step);
  steps_[step].sums = new_buffer(bytes, backward_time(writer), backward_time(step));
}

void Graph::contribute(Step& step, NodeId value, int buffer, int time) {
  int& mine = gradient_buffer_[value];
  if (mine < 0) {
    mine = buffer;
  } else {
    Step::Addition addition{
        .copy_from = -1, .accumulator = mine, .addend = buffer, .shape = value_shape_[value]};
    buffers_[mine].last = std::max(buffers_[mine].last, time);
    buffers_[buffer].last = std::max(buffers_[buffer].last, time);
    if (others_need(mine, value, time)) {
      addition.copy_from = mine;
      addition.accumulator = mine = new_buffer(bytes_of(value), time, time);
    }
    step.additions.push_back(addition);
  }
  buffers_[mine].last = std::max(buffers_[mine].last, gradient_time_[value]);
}

// Where the next step can make what a step would write, that is left to it (see Left in family.h):
// in forward to the step behind it, in backward to the one before it. What it is made from must
// stay until then; in forward it does, as backward reads it.
void Graph::plan_leaving() {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    const OpTraits& traits = step.op->traits();
    if (traits.left_bytes == 0) continue;
    CHECK(traits.reads_inputs, "{}: what it leaves needs its inputs", step.layer->node);
    step.leaves_output = i + 1 < steps_.size() && steps_[i + 1].op->traits().makes_input &&
                         steps_[i + 1].layer->inputs[0] == step.layer->output;
    step.leaves_gradient = i > 0 && can_leave_gradient(i);
    if (step.leaves_gradient) {
      std::vector<int> kept = step.inputs;
      kept.insert(kept.end(), {step.output_gradient, step.saved});
      for (int buffer : kept)
        if (buffer >= 0)
          buffers_[buffer].last = std::max(buffers_[buffer].last, backward_time(i - 1));
    }
    if (step.leaves_output || step.leaves_gradient) bytes = std::max(bytes, traits.left_bytes);
  }
  if (bytes > 0) left_ = new_buffer(bytes, 0, 2 * int(steps_.size()));
}

// If the step before reads this gradient, no other layer has given a part of it (those that read
// the value have run: they come behind this step), and what it is made from is not written there.
bool Graph::can_leave_gradient(std::size_t i) const {
  const Step &step = steps_[i], &next = steps_[i - 1];
  if (!next.op->traits().makes_gradient) return false;
  if (step.layer->inputs[0] != next.layer->output) return false;
  if (step.output_gradient < 0 || step.input_gradients[0] < 0) return false;
  if (step.add_to_gradient || !step.additions.empty()) return false;
  return std::count(next.input_gradients.begin(), next.input_gradients.end(),
                    step.output_gradient) == 0;
}

// The images, or the part of them that the first layer reads.
void Graph::ingest(const Batch& batch, std::byte* arena) const {
  const Shape& part = plan_.front().shape;
  auto* out = reinterpret_cast<float*>(at(arena, value_buffer_[plan_.front().output]));
  if (part == image_) {
    std::memcpy(out, batch.images.data(), batch.images.size() * sizeof(float));
    return;
  }
  const std::size_t planes = std::size_t(batch.size()) * image_.channels;
  for (std::size_t plane = 0; plane < planes; ++plane)
    for (int row = 0; row < part.height; ++row) {
      const float* from =
          batch.images.data() + plane * image_.area() + std::size_t(row) * image_.width;
      out = std::copy_n(from, part.width, out);
    }
}

LossSums Graph::forward(const Batch& batch, std::byte* arena, const NodeHook& before,
                        int mean_over) {
  CHECK(batch.size() == options_.batch, "a batch of {} in a graph for {}", batch.size(),
        options_.batch);
  CHECK(batch.images.size() == image_.count() * batch.size(), "{} floats are not {} images",
        batch.images.size(), batch.size());
  ingest(batch, arena);
  std::vector<const std::byte*> inputs;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    if (before) before(step.layer->node);
    inputs.clear();
    for (int buffer : step.inputs) inputs.push_back(at(arena, buffer));
    const double start = timing_ ? now_s() : 0;
    step.op->forward({.inputs = inputs,
                      .output = at(arena, step.output),
                      .saved = at(arena, step.saved),
                      .scratch = at(arena, scratch_),
                      .key = {batch.epoch, batch.samples},
                      .leave = step.leaves_output ? at(arena, left_) : nullptr,
                      .left = i > 0 && steps_[i - 1].leaves_output ? at(arena, left_) : nullptr});
    if (timing_) timings_[i].forward_s += now_s() - start;
  }
  const auto* output = reinterpret_cast<const float*>(at(arena, value_buffer_[output_]));
  for (std::size_t i = 0; i < logits_.size(); ++i) logits_[i] = output_scale_ * output[i];
  std::span<float> gradients;
  if (options_.training)
    gradients = {reinterpret_cast<float*>(at(arena, gradient_buffer_[output_])), logits_.size()};
  const float smoothing = options_.training ? options_.label_smoothing : 0;
  const LossSums sums = softmax_cross_entropy(
      logits_, batch.labels, int(value_shape_[output_].count()), {smoothing, mean_over}, gradients);
  for (float& gradient : gradients) gradient *= output_scale_;
  return sums;
}

std::vector<ArenaRange> Graph::backward(std::byte* arena, const NodeHook& done,
                                        WeightUpdate* update) {
  std::vector<ArenaRange> moved;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> gradients;
  for (std::size_t i = steps_.size(); i-- > 0;) {
    Step& step = steps_[i];
    const double start = timing_ ? now_s() : 0;
    if (step.output_gradient < 0) {  // nothing trained here or before
      if (done && step.has_parameters) done(step.layer->node);
      continue;
    }
    inputs.clear();
    gradients.clear();
    for (int buffer : step.inputs) inputs.push_back(at(arena, buffer));
    for (int buffer : step.input_gradients) gradients.push_back(at(arena, buffer));
    std::byte* output_gradient = at(arena, step.output_gradient);
    if (step.copy_from >= 0)
      std::memcpy(output_gradient, at(arena, step.copy_from), buffers_[step.output_gradient].bytes);
    const bool moves = update && !step.frozen && step.op->traits().updates_weight;
    GradientSums take;
    if (step.takes_for >= 0) {
      const Step& user = steps_[step.takes_for];
      const OpTraits& traits = user.op->traits();
      if (traits.sums_with_input) take.factor = at(arena, user.inputs[0]);
      take.relu = traits.sums_behind_relu;
      if (traits.saves_signs) take.saved = at(arena, user.saved);
      take.sums = at(arena, user.sums);
    }
    const bool left = i + 1 < steps_.size() && steps_[i + 1].leaves_gradient;
    step.op->backward({.inputs = inputs,
                       .output = at(arena, step.output),
                       .saved = at(arena, step.saved),
                       .scratch = at(arena, scratch_),
                       .output_gradient = output_gradient,
                       .input_gradients = gradients,
                       .add_to_gradient = step.add_to_gradient,
                       .take = step.takes_for >= 0 ? &take : nullptr,
                       .taken = at(arena, step.sums),
                       .leave = step.leaves_gradient ? at(arena, left_) : nullptr,
                       .left = left ? at(arena, left_) : nullptr,
                       .times = timing_ ? &timings_[i].split : nullptr,
                       .update = moves ? update : nullptr});
    if (moves) moved.push_back(step.weight);
    for (const Step::Addition& addition : step.additions) {
      std::byte* accumulator = at(arena, addition.accumulator);
      if (addition.copy_from >= 0)
        std::memcpy(accumulator, at(arena, addition.copy_from),
                    buffers_[addition.accumulator].bytes);
      family_.add(accumulator, at(arena, addition.addend), addition.shape, options_.batch);
    }
    if (timing_) timings_[i].backward_s += now_s() - start;
    if (done && step.has_parameters) done(step.layer->node);
  }
  return moved;
}

}  // namespace convoy
