// A whole network in double precision by plain loops, for tests only: every value has a buffer of
// its own, gradients are accumulated, nothing is fused. The engine is compared with it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "nn/network.h"
#include "nn/reference_layers.h"

namespace convoy {

// The same network with every dropout rate 0, which is the identity.
Network without_dropout(const Network& network);

class ReferenceGraph {
 public:
  struct Outcome {
    double loss_sum = 0;  // over the batch, label smoothing included
    int correct = 0;      // of equal logits the first counts
  };
  // What element `element` (in CHW order) of a sample is multiplied with by a dropout layer: 0 or 1
  // / (1 - rate).
  using DropoutFactor = std::function<double(const Node& node, int sample, std::size_t element)>;

  // Parameters start as 0, running means as 0, running variances as 1.
  ReferenceGraph(const Network& network, int batch);

  // A parameter ("conv1.weight") or running statistic ("bn1.running_mean", "bn1.running_var"),
  // plain layout.
  void set(const std::string& name, std::span<const float> values);
  // The same for reading and changing in place.
  std::vector<double>& numbers(const std::string& name);
  // Needed in training by dropout layers with a rate above 0.
  void set_dropout(DropoutFactor factor) { dropout_ = std::move(factor); }

  // Training: batch norm by the statistics of the batch (biased variance), running statistics
  // updated (with the unbiased variance), dropout. Otherwise: running statistics, no dropout.
  // Images are NCHW.
  Outcome forward(std::span<const float> images, std::span<const std::int32_t> labels,
                  double label_smoothing = 0, bool training = true);
  Outcome forward(std::span<const double> images, std::span<const std::int32_t> labels,
                  double label_smoothing = 0, bool training = true);
  // Of the mean loss over the batch, of the last forward.
  void backward();

  const std::vector<double>& logits() const { return values_.back().data; }  // [batch][classes]
  const std::vector<double>& value(NodeId node) const {
    return values_[node].data;
  }  // [batch][C][H][W]
  // Of a node with a folded ReLU: the gradient in front of that ReLU.
  const std::vector<double>& value_gradient(NodeId node) const {
    return value_gradients_[node].data;
  }
  const std::vector<double>& gradient(const std::string& name) const;  // of a parameter

 private:
  using Numbers = reference::Numbers;
  using Tensor = reference::Tensor;

  void forward_node(const Node& node);
  void backward_node(const Node& node);
  void forward_norm(const Node& node, const BatchNorm& layer);
  void forward_dropout(const Node& node, const Dropout& layer);
  Outcome loss();
  const Numbers& weight(const Node& node) const;
  const Numbers& bias(const Node& node) const;  // empty where the layer has none
  Numbers& weight_gradient(const Node& node);
  Numbers& bias_gradient(const Node& node);
  double dropout_factor(const Node& node, const Dropout& layer, int sample,
                        std::size_t element) const;

  Network network_;
  int batch_;
  bool training_ = true;
  double label_smoothing_ = 0;
  std::vector<std::int32_t> labels_;
  DropoutFactor dropout_;
  std::map<std::string, Numbers> numbers_;    // parameters and running statistics
  std::map<std::string, Numbers> gradients_;  // of parameters
  std::map<NodeId, reference::Moments> moments_;
  std::vector<Tensor> values_;
  std::vector<Tensor> value_gradients_;
};

}  // namespace convoy
