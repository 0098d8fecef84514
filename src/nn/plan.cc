#include "nn/plan.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace convoy {
namespace {

std::vector<PlannedLayer> as_written(const Network& network) {
  std::vector<PlannedLayer> plan;
  for (const Node& node : network.nodes())
    plan.push_back({node.id, node.layer, node.inputs, node.id, node.shape});
  return plan;
}

// For each value, the positions in the plan of the layers that read it.
std::map<NodeId, std::vector<std::size_t>> readers_of(const std::vector<PlannedLayer>& plan) {
  std::map<NodeId, std::vector<std::size_t>> readers;
  for (std::size_t i = 0; i < plan.size(); ++i)
    for (NodeId value : plan[i].inputs) readers[value].push_back(i);
  return readers;
}

// relu -> max pool becomes max pool -> relu. The layers trade places, and the values keep their
// names: what was the ReLU's output is now the pool's, what was the pool's is now the ReLU's, so
// that nobody else needs to know.
void move_relu_behind_max_pool(std::vector<PlannedLayer>& plan) {
  const auto readers = readers_of(plan);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (!std::holds_alternative<Relu>(plan[i].layer)) continue;
    const auto found = readers.find(plan[i].output);
    if (found == readers.end() || found->second.size() != 1) continue;
    const std::size_t j = found->second[0];
    if (!std::holds_alternative<MaxPool>(plan[j].layer)) continue;
    std::swap(plan[i].node, plan[j].node);
    std::swap(plan[i].layer, plan[j].layer);
    plan[i].shape = plan[j].shape;
  }
}

bool* relu_flag(Layer& layer) {
  return std::visit(
      [](auto& kind) -> bool* {
        if constexpr (requires { kind.relu; })
          return &kind.relu;
        else
          return nullptr;
      },
      layer);
}

void remove_gone(std::vector<PlannedLayer>& plan, const std::vector<bool>& gone) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < plan.size(); ++i)
    if (!gone[i]) {
      if (kept != i) plan[kept] = std::move(plan[i]);
      ++kept;
    }
  plan.resize(kept);
}

// The producer takes over the ReLU's output value; the ReLU goes.
void fold_relus(std::vector<PlannedLayer>& plan, const Family& family) {
  const auto readers = readers_of(plan);
  std::map<NodeId, std::size_t> producer;
  for (std::size_t i = 0; i < plan.size(); ++i) producer[plan[i].output] = i;
  std::vector<bool> gone(plan.size(), false);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (!std::holds_alternative<Relu>(plan[i].layer) || readers.at(plan[i].inputs[0]).size() != 1)
      continue;
    PlannedLayer& maker = plan[producer.at(plan[i].inputs[0])];
    bool* flag = relu_flag(maker.layer);
    if (flag == nullptr || *flag || !family.folds_relu(maker.layer)) continue;
    *flag = true;
    maker.output = plan[i].output;
    producer[maker.output] = producer.at(plan[i].inputs[0]);
    gone[i] = true;
  }
  remove_gone(plan, gone);
}

// batch norm -> add becomes a batch norm with a second input, in the place of the addition.
void fold_adds(std::vector<PlannedLayer>& plan, const Family& family) {
  if (!family.folds_add()) return;
  const auto readers = readers_of(plan);
  std::map<NodeId, std::size_t> producer;
  for (std::size_t i = 0; i < plan.size(); ++i) producer[plan[i].output] = i;
  std::vector<bool> gone(plan.size(), false);
  for (std::size_t i = 0; i + 1 < plan.size(); ++i) {
    const auto* add = std::get_if<Add>(&plan[i].layer);
    if (!add || plan[i].inputs[0] == plan[i].inputs[1]) continue;
    std::size_t first = producer.at(plan[i].inputs[0]), second = producer.at(plan[i].inputs[1]);
    if (first < second) std::swap(first, second);
    const auto* norm = std::get_if<BatchNorm>(&plan[first].layer);
    if (!norm || norm->relu || plan[first].inputs.size() != 1 ||
        readers.at(plan[first].output).size() != 1)
      continue;
    if (std::holds_alternative<Input>(plan[second].layer) ||
        plan[first].inputs[0] == plan.front().output)
      continue;
    BatchNorm folded = *norm;
    folded.relu = add->relu;
    plan[i].node = plan[first].node;
    plan[i].inputs = {plan[first].inputs[0], plan[second].output};
    plan[i].layer = folded;
    gone[first] = true;
  }
  remove_gone(plan, gone);
}

bool is_elementwise(const Layer& layer) {
  return std::holds_alternative<Relu>(layer) || std::holds_alternative<Dropout>(layer) ||
         std::holds_alternative<LocalResponseNorm>(layer);
}

// Whether some rows of the output can be made from some rows of the input.
bool reads_rows(const Layer& layer) {
  return std::holds_alternative<Convolution>(layer) || std::holds_alternative<MaxPool>(layer) ||
         is_elementwise(layer);
}

// How many rows (or columns) of an input of `size` a layer reads to make `wanted` rows.
int rows_read(const Layer& layer, int wanted, int size) {
  const auto window = [&](int kernel, int stride, int padding) {
    return std::min(size, (wanted - 1) * stride + kernel - padding);
  };
  if (const auto* conv = std::get_if<Convolution>(&layer))
    return window(conv->kernel, conv->stride, conv->padding);
  if (const auto* pool = std::get_if<MaxPool>(&layer))
    return window(pool->kernel, pool->stride, pool->padding);
  return is_elementwise(layer) ? std::min(size, wanted) : size;
}

// Whether each value may be cut. Batch norm reads everything, for its statistics, and values with
// several readers stay whole; what an elementwise layer or a convolution makes can only be cut
// together with what it reads.
std::map<NodeId, bool> cuttable_values(const std::vector<PlannedLayer>& plan) {
  const auto readers = readers_of(plan);
  std::map<NodeId, bool> cuttable;
  for (const PlannedLayer& layer : plan) {
    const auto found = readers.find(layer.output);
    bool free = found != readers.end() && found->second.size() == 1;
    if (std::holds_alternative<Input>(layer.layer) ||
        std::holds_alternative<MaxPool>(layer.layer)) {
      // Nothing more to ask: pooling may leave a part of its input unread.
    } else if (reads_rows(layer.layer)) {
      free = free && cuttable.at(layer.inputs[0]);
    } else {
      free = false;
    }
    cuttable[layer.output] = free;
  }
  return cuttable;
}

// From the last layer to the first: a value is cut to the rows and columns which its reader reads.
void cut_unread_rows(std::vector<PlannedLayer>& plan) {
  const auto readers = readers_of(plan);
  const auto cuttable = cuttable_values(plan);
  for (std::size_t i = plan.size(); i-- > 0;) {
    if (!cuttable.at(plan[i].output)) continue;
    const PlannedLayer& reader = plan[readers.at(plan[i].output)[0]];
    plan[i].shape.height = rows_read(reader.layer, reader.shape.height, plan[i].shape.height);
    plan[i].shape.width = rows_read(reader.layer, reader.shape.width, plan[i].shape.width);
  }
}

}  // namespace

std::vector<PlannedLayer> plan_layers(const Network& network, const Family& family) {
  std::vector<PlannedLayer> plan = as_written(network);
  move_relu_behind_max_pool(plan);
  fold_relus(plan, family);
  fold_adds(plan, family);
  cut_unread_rows(plan);
  return plan;
}

OpSpec op_spec(const Network& network, const std::vector<PlannedLayer>& plan,
               const PlannedLayer& layer, int batch, int tuning_batch, bool training) {
  OpSpec spec;
  spec.layer = layer.layer;
  spec.name = network.node(layer.node).name;
  const std::vector<bool> reached = network.reached_by_backward();
  bool wanted = false;
  for (NodeId value : layer.inputs) {
    const auto maker = std::find_if(
        plan.begin(), plan.end(), [&](const PlannedLayer& other) { return other.output == value; });
    CHECK(maker != plan.end(), "{} reads a value that nobody makes", spec.name);
    spec.inputs.push_back(maker->shape);
    if (std::holds_alternative<Input>(maker->layer)) spec.first = true;
    wanted = wanted || reached[value];
  }
  spec.wants_input_gradient = wanted;
  spec.output = layer.shape;
  spec.batch = batch;
  spec.tuning_batch = tuning_batch;
  spec.training = training;
  spec.last = layer.output == network.output().id;
  return spec;
}

}  // namespace convoy
