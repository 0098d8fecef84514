#include "nn/reference.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace convoy {
namespace {

const reference::Numbers kNone;

bool has_folded_relu(const Layer& layer) {
  return std::visit(
      [](const auto& l) {
        if constexpr (requires { l.relu; }) return l.relu;
        return false;
      },
      layer);
}

}  // namespace

Network without_dropout(const Network& network) {
  Network copy(network.name(), network.input_shape());
  for (const Node& node : network.nodes()) {
    if (node.id == 0) continue;
    Layer layer = node.layer;
    if (auto* dropout = std::get_if<Dropout>(&layer)) dropout->rate = 0;
    copy.add(node.name, layer, node.inputs);
  }
  copy.scale_output(network.output_scale());
  return copy;
}

ReferenceGraph::ReferenceGraph(const Network& network, int batch)
    : network_(network), batch_(batch) {
  for (const ParameterSpec& spec : network_.parameters()) numbers_[spec.name].resize(spec.count());
  for (const Node& node : network_.nodes()) {
    values_.emplace_back(node.shape, batch);
    if (!std::holds_alternative<BatchNorm>(node.layer)) continue;
    numbers_[node.name + ".running_mean"].assign(node.shape.channels, 0);
    numbers_[node.name + ".running_var"].assign(node.shape.channels, 1);
  }
}

std::vector<double>& ReferenceGraph::numbers(const std::string& name) {
  const auto found = numbers_.find(name);
  CHECK(found != numbers_.end(), "{} has no {}", network_.name(), name);
  return found->second;
}

void ReferenceGraph::set(const std::string& name, std::span<const float> values) {
  Numbers& target = numbers(name);
  CHECK(values.size() == target.size(), "{} has {} numbers, not {}", name, target.size(),
        values.size());
  std::copy(values.begin(), values.end(), target.begin());
}

const std::vector<double>& ReferenceGraph::gradient(const std::string& name) const {
  const auto found = gradients_.find(name);
  CHECK(found != gradients_.end(), "no gradient of {}", name);
  return found->second;
}

ReferenceGraph::Outcome ReferenceGraph::forward(std::span<const float> images,
                                                std::span<const std::int32_t> labels,
                                                double label_smoothing, bool training) {
  const Numbers wide(images.begin(), images.end());
  return forward(wide, labels, label_smoothing, training);
}

ReferenceGraph::Outcome ReferenceGraph::forward(std::span<const double> images,
                                                std::span<const std::int32_t> labels,
                                                double label_smoothing, bool training) {
  CHECK(images.size() == values_.front().data.size() && int(labels.size()) == batch_,
        "{} numbers and {} labels for a batch of {}", images.size(), labels.size(), batch_);
  training_ = training;
  label_smoothing_ = label_smoothing;
  labels_.assign(labels.begin(), labels.end());
  std::copy(images.begin(), images.end(), values_.front().data.begin());
  for (const Node& node : network_.nodes()) {
    if (node.id == 0) continue;
    forward_node(node);
    if (has_folded_relu(node.layer))
      for (double& v : values_[node.id].data) v = std::max(v, 0.0);
  }
  for (double& logit : values_.back().data) logit *= network_.output_scale();
  return loss();
}

void ReferenceGraph::forward_node(const Node& node) {
  using namespace reference;
  Tensor& y = values_[node.id];
  const Tensor& x = values_[node.inputs[0]];
  if (const auto* convolution = std::get_if<Convolution>(&node.layer)) {
    reference::forward(*convolution, x, weight(node), bias(node), y);
  } else if (const auto* dense = std::get_if<Dense>(&node.layer)) {
    reference::forward(*dense, x, weight(node), bias(node), y);
  } else if (const auto* norm = std::get_if<BatchNorm>(&node.layer)) {
    forward_norm(node, *norm);
  } else if (const auto* dropout = std::get_if<Dropout>(&node.layer)) {
    forward_dropout(node, *dropout);
  } else if (std::holds_alternative<Relu>(node.layer)) {
    std::transform(x.data.begin(), x.data.end(), y.data.begin(),
                   [](double v) { return std::max(v, 0.0); });
  } else if (std::holds_alternative<Add>(node.layer)) {
    const Tensor& other = values_[node.inputs[1]];
    std::transform(x.data.begin(), x.data.end(), other.data.begin(), y.data.begin(), std::plus<>{});
  } else if (std::holds_alternative<Concat>(node.layer)) {
    for (int n = 0; n < batch_; ++n) {
      double* to = y.sample(n);
      for (const NodeId input : node.inputs)
        to = std::copy_n(values_[input].sample(n), values_[input].shape.count(), to);
    }
  } else {
    std::visit(
        [&](const auto& layer) {
          if constexpr (requires { reference::forward(layer, x, y); })
            reference::forward(layer, x, y);
        },
        node.layer);
  }
}

void ReferenceGraph::forward_norm(const Node& node, const BatchNorm& layer) {
  const Tensor& x = values_[node.inputs[0]];
  Numbers& mean = numbers(node.name + ".running_mean");
  Numbers& variance = numbers(node.name + ".running_var");
  if (!training_) {
    moments_[node.id] = {mean, variance};
  } else {
    const reference::Moments& batch = moments_[node.id] = reference::moments(x);
    const double count = double(batch_) * double(x.shape.area());
    const double unbias = count / std::max(count - 1, 1.0);
    const double momentum = layer.momentum;
    for (int c = 0; c < x.shape.channels; ++c) {
      mean[c] += momentum * (batch.mean[c] - mean[c]);
      variance[c] += momentum * (batch.variance[c] * unbias - variance[c]);
    }
  }
  reference::forward(layer, x, moments_[node.id], weight(node), bias(node), values_[node.id]);
}

double ReferenceGraph::dropout_factor(const Node& node, const Dropout& layer, int sample,
                                      std::size_t element) const {
  if (!training_ || layer.rate == 0) return 1;
  CHECK(dropout_, "{}: training with dropout needs set_dropout or without_dropout", node.name);
  return dropout_(node, sample, element);
}

void ReferenceGraph::forward_dropout(const Node& node, const Dropout& layer) {
  const Tensor& x = values_[node.inputs[0]];
  for (int n = 0; n < batch_; ++n)
    for (std::size_t i = 0; i < x.shape.count(); ++i)
      values_[node.id].sample(n)[i] = x.sample(n)[i] * dropout_factor(node, layer, n, i);
}

ReferenceGraph::Outcome ReferenceGraph::loss() {
  Outcome outcome;
  const int classes = network_.classes();
  for (int n = 0; n < batch_; ++n) {
    const double* logit = values_.back().sample(n);
    const double* largest = std::max_element(logit, logit + classes);
    double sum = 0, mean_logit = 0;
    for (int c = 0; c < classes; ++c) {
      sum += std::exp(logit[c] - *largest);
      mean_logit += logit[c] / classes;
    }
    const double log_sum = std::log(sum) + *largest;
    outcome.loss_sum += (1 - label_smoothing_) * (log_sum - logit[labels_[n]]) +
                        label_smoothing_ * (log_sum - mean_logit);
    outcome.correct += largest - logit == labels_[n];
  }
  return outcome;
}

void ReferenceGraph::backward() {
  gradients_.clear();
  for (const ParameterSpec& spec : network_.parameters())
    gradients_[spec.name].resize(spec.count());
  value_gradients_.clear();
  for (const Node& node : network_.nodes()) value_gradients_.emplace_back(node.shape, batch_);
  const int classes = network_.classes();
  for (int n = 0; n < batch_; ++n) {
    const double* logit = values_.back().sample(n);
    double* gradient = value_gradients_.back().sample(n);
    const double largest = *std::max_element(logit, logit + classes);
    double sum = 0;
    for (int c = 0; c < classes; ++c) sum += std::exp(logit[c] - largest);
    for (int c = 0; c < classes; ++c) {
      const double target = (c == labels_[n]) * (1 - label_smoothing_) + label_smoothing_ / classes;
      gradient[c] = (std::exp(logit[c] - largest) / sum - target) / batch_;
      gradient[c] *= network_.output_scale();
    }
  }
  for (NodeId id = network_.output().id; id > 0; --id) backward_node(network_.node(id));
}

void ReferenceGraph::backward_node(const Node& node) {
  const Tensor& x = values_[node.inputs[0]];
  const Tensor& y = values_[node.id];
  Tensor& gx = value_gradients_[node.inputs[0]];
  Tensor& gy = value_gradients_[node.id];
  const std::size_t count = gy.data.size();
  if (has_folded_relu(node.layer) || std::holds_alternative<Relu>(node.layer))
    for (std::size_t i = 0; i < count; ++i)
      if (y.data[i] <= 0) gy.data[i] = 0;
  if (const auto* convolution = std::get_if<Convolution>(&node.layer)) {
    reference::backward(*convolution, x, weight(node), gy, gx, weight_gradient(node),
                        bias_gradient(node));
  } else if (const auto* dense = std::get_if<Dense>(&node.layer)) {
    reference::backward(*dense, x, weight(node), gy, gx, weight_gradient(node),
                        bias_gradient(node));
  } else if (const auto* norm = std::get_if<BatchNorm>(&node.layer)) {
    reference::backward(*norm, x, moments_[node.id], training_, weight(node), gy, gx,
                        weight_gradient(node), bias_gradient(node));
  } else if (const auto* dropout = std::get_if<Dropout>(&node.layer)) {
    for (int n = 0; n < batch_; ++n)
      for (std::size_t i = 0; i < node.shape.count(); ++i)
        gx.sample(n)[i] += gy.sample(n)[i] * dropout_factor(node, *dropout, n, i);
  } else if (std::holds_alternative<Relu>(node.layer) || std::holds_alternative<Add>(node.layer)) {
    for (const NodeId input : node.inputs)
      for (std::size_t i = 0; i < count; ++i) value_gradients_[input].data[i] += gy.data[i];
  } else if (std::holds_alternative<Concat>(node.layer)) {
    for (int n = 0; n < batch_; ++n) {
      const double* from = gy.sample(n);
      for (const NodeId input : node.inputs)
        for (std::size_t i = 0; i < values_[input].shape.count(); ++i)
          value_gradients_[input].sample(n)[i] += *from++;
    }
  } else {
    std::visit(
        [&](const auto& layer) {
          if constexpr (requires { reference::backward(layer, x, gy, gx); })
            reference::backward(layer, x, gy, gx);
        },
        node.layer);
  }
}

const reference::Numbers& ReferenceGraph::weight(const Node& node) const {
  return numbers_.at(node.name + ".weight");
}

const reference::Numbers& ReferenceGraph::bias(const Node& node) const {
  const auto found = numbers_.find(node.name + ".bias");
  return found == numbers_.end() ? kNone : found->second;
}

reference::Numbers& ReferenceGraph::weight_gradient(const Node& node) {
  return gradients_.at(node.name + ".weight");
}

// An empty entry where the layer has no bias; nothing is added to it.
reference::Numbers& ReferenceGraph::bias_gradient(const Node& node) {
  return gradients_[node.name + ".bias"];
}

}  // namespace convoy
