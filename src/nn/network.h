// A network as a readable specification: named layers and the edges between them. It knows shapes,
// parameters and operations, and nothing of memory, batches or kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/shape.h"
#include "kernels/layers.h"

namespace convoy {

using NodeId = int;

struct Node {
  NodeId id = 0;
  std::string name;  // torchvision's module name where there is one, as in "layer1.0.conv1"
  Layer layer;
  std::vector<NodeId> inputs;  // all smaller than id
  Shape shape;                 // of the output, for one sample
  bool frozen = false;         // its parameters stay as they are
};

// A trained tensor, in the plain (PyTorch) layout. BatchNorm's running statistics are Buffers, see
// below.
enum class Role { weight, bias, norm_weight, norm_bias };
struct ParameterSpec {
  std::string name;  // node's name + ".weight" or ".bias"
  NodeId node = 0;
  Role role = Role::weight;
  std::vector<std::int64_t> dims;
  bool frozen = false;  // training leaves it as it is
  std::size_t count() const;
};

class Network {
 public:
  // Node 0 is the input, named "input".
  Network(std::string name, Shape input);

  // Appends a layer and infers its shape. Throws ConfigError where the inputs do not fit (the text
  // names the layer).
  NodeId add(std::string name, Layer layer, std::vector<NodeId> inputs);
  // The same, after the last node added.
  NodeId then(std::string name, Layer layer);

  // Training leaves alone the layer of this name, or all whose names begin with it and a dot.
  // Throws ConfigError where no such layer has parameters.
  void freeze(const std::string& name);
  // By node: whether something trained lies at it or before it, so that backward must reach it.
  std::vector<bool> reached_by_backward() const;

  // The logits are the last layer's output times this.
  void scale_output(float scale) { output_scale_ = scale; }
  float output_scale() const { return output_scale_; }

  const std::string& name() const { return name_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const Node& output() const { return nodes_.back(); }  // the logits
  Shape input_shape() const { return nodes_.front().shape; }
  int classes() const { return int(output().shape.count()); }
  Shape input_shape(const Node& node, int which = 0) const {
    return nodes_[node.inputs[which]].shape;
  }

  // In the order of the nodes; within a node weight, then bias.
  std::vector<ParameterSpec> parameters() const;
  std::size_t parameter_count() const;
  // Multiply-adds count as one operation, as in torchvision's tables ("0.7 GFLOP" for alexnet);
  // convolution and dense.
  double forward_flops(const Node& node) const;
  double forward_flops() const;

 private:
  std::string name_;
  std::vector<Node> nodes_;
  float output_scale_ = 1;
};

}  // namespace convoy
