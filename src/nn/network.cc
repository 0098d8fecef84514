#include "nn/network.h"

#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/nearest.h"

namespace convoy {
namespace {

// Beyond any image or layer; keeps every product of dimensions far from overflow.
constexpr int kLargestDimension = 1 << 20;

// One layer about to be added: what its error messages need.
struct Place {
  const std::string& network;
  const Shape& network_input;
  const std::string& name;
  const Layer& layer;
  std::span<const Shape> inputs;

  const Shape& input() const { return inputs.front(); }

  [[noreturn]] void fail(const std::string& reason) const {
    std::string shapes;
    for (const Shape& shape : inputs) shapes += (shapes.empty() ? "" : ", ") + shape.to_string();
    throw ConfigError("{} with input {}: layer {} ({}) cannot take {}: {}", network,
                      network_input.to_string(), name, layer_kind(layer), shapes, reason);
  }
  void require(bool condition, const char* reason) const {
    if (!condition) fail(reason);
  }
};

// The number of positions of a window of `kernel` that moves by `stride` over `extent` padded on
// both sides.
int positions(const Place& place, int extent, int kernel, int stride, int padding, bool ceil_mode) {
  const int room = extent + 2 * padding - kernel;
  if (room < 0)
    place.fail(fmt::format(
        "a window of {0}x{0} does not fit into a side of {1} with padding {2}; use a larger input",
        kernel, extent, padding));
  if (!ceil_mode) return room / stride + 1;
  int count = (room + stride - 1) / stride + 1;
  // The last window must start inside the input or the padding before it, never in the padding
  // behind it.
  if ((count - 1) * stride >= extent + padding) --count;
  return count;
}

void check_window(const Place& place, int kernel, int stride, int padding) {
  place.require(kernel >= 1 && kernel <= kLargestDimension, "its kernel must be at least 1");
  place.require(stride >= 1 && stride <= kLargestDimension, "its stride must be at least 1");
  place.require(padding >= 0 && padding <= kLargestDimension, "its padding must be at least 0");
}

// PyTorch's rules: one overload per kind of layer.
struct InferShape {
  const Place& place;

  Shape operator()(const Input&) const { place.fail("a network has one input, its first node"); }

  Shape operator()(const Convolution& c) const {
    check_window(place, c.kernel, c.stride, c.padding);
    const Shape& in = place.input();
    place.require(c.channels >= 1 && c.channels <= kLargestDimension,
                  "it needs at least 1 output channel");
    place.require(c.groups >= 1 && in.channels % c.groups == 0 && c.channels % c.groups == 0,
                  "its groups must divide the channels of input and output");
    const int height = positions(place, in.height, c.kernel, c.stride, c.padding, false);
    const int width = positions(place, in.width, c.kernel, c.stride, c.padding, false);
    return {c.channels, height, width};
  }

  Shape pool(const auto& p) const {
    check_window(place, p.kernel, p.stride, p.padding);
    place.require(p.padding <= p.kernel / 2, "its padding must be at most half its kernel");
    const Shape& in = place.input();
    return {in.channels, positions(place, in.height, p.kernel, p.stride, p.padding, p.ceil_mode),
            positions(place, in.width, p.kernel, p.stride, p.padding, p.ceil_mode)};
  }
  Shape operator()(const MaxPool& p) const { return pool(p); }
  Shape operator()(const AveragePool& p) const { return pool(p); }

  Shape operator()(const AdaptiveAveragePool& p) const {
    place.require(p.height >= 1 && p.width >= 1, "its output must be at least 1x1");
    place.require(p.height <= kLargestDimension && p.width <= kLargestDimension,
                  "its output is too large");
    return {place.input().channels, p.height, p.width};
  }

  Shape operator()(const Dense& d) const {
    place.require(d.features >= 1 && d.features <= kLargestDimension,
                  "its features must be between 1 and 1,048,576");
    place.require(place.input().count() <= std::size_t{1} << 32, "its input is too large");
    return {d.features, 1, 1};
  }

  Shape operator()(const Dropout& d) const {
    place.require(d.rate >= 0 && d.rate < 1, "its rate must be at least 0 and below 1");
    return place.input();
  }

  Shape operator()(const Concat&) const {
    Shape out = place.input();
    for (const Shape& shape : place.inputs.subspan(1)) {
      place.require(shape.height == out.height && shape.width == out.width,
                    "heights and widths must be equal");
      out.channels += shape.channels;
    }
    return out;
  }

  Shape operator()(const Add&) const {
    place.require(place.inputs.size() == 2 && place.inputs[0] == place.inputs[1],
                  "it adds two inputs of one shape");
    return place.input();
  }

  Shape operator()(const LocalResponseNorm& n) const {
    place.require(n.size >= 1, "its size must be at least 1");
    return place.input();
  }

  Shape operator()(const BatchNorm&) const { return place.input(); }
  Shape operator()(const Relu&) const { return place.input(); }
};

bool takes_several_inputs(const Layer& layer) {
  return std::holds_alternative<Concat>(layer) || std::holds_alternative<Add>(layer);
}

}  // namespace

std::size_t ParameterSpec::count() const {
  return std::accumulate(dims.begin(), dims.end(), std::size_t{1}, std::multiplies<>{});
}

Network::Network(std::string name, Shape input) : name_(std::move(name)) {
  for (const int dimension : {input.channels, input.height, input.width})
    if (dimension < 1 || dimension > kLargestDimension)
      throw ConfigError("{}: an input of {} cannot be: each dimension must be between 1 and {}",
                        name_, input.to_string(), kLargestDimension);
  nodes_.push_back({.id = 0, .name = "input", .layer = Input{}, .inputs = {}, .shape = input});
}

NodeId Network::add(std::string name, Layer layer, std::vector<NodeId> inputs) {
  const NodeId id = NodeId(nodes_.size());
  CHECK(!inputs.empty() && (inputs.size() == 1 || takes_several_inputs(layer)),
        "{}: layer {} ({}) has {} inputs", name_, name, layer_kind(layer), inputs.size());
  std::vector<Shape> shapes;
  for (const NodeId input : inputs) {
    CHECK(input >= 0 && input < id, "{}: layer {} reads node {} of {}", name_, name, input, id);
    shapes.push_back(nodes_[input].shape);
  }
  for (const Node& node : nodes_)
    if (node.name == name) throw ConfigError("{}: two layers are named {}", name_, name);
  const Place place{name_, nodes_.front().shape, name, layer, shapes};
  const Shape shape = std::visit(InferShape{place}, layer);
  nodes_.push_back({.id = id,
                    .name = std::move(name),
                    .layer = layer,
                    .inputs = std::move(inputs),
                    .shape = shape});
  return id;
}

NodeId Network::then(std::string name, Layer layer) {
  return add(std::move(name), layer, {nodes_.back().id});
}

void Network::freeze(const std::string& name) {
  bool found = false;
  std::vector<std::string> names;
  for (const ParameterSpec& spec : parameters()) {
    Node& node = nodes_[spec.node];
    names.push_back(node.name);
    if (node.name != name && !node.name.starts_with(name + ".")) continue;
    node.frozen = found = true;
  }
  if (!found)
    throw ConfigError("{} has no layer with parameters named '{}' to freeze: did you mean {}?",
                      name_, name, nearest(name, names));
}

std::vector<bool> Network::reached_by_backward() const {
  std::vector<bool> reached(nodes_.size(), false);
  for (const ParameterSpec& spec : parameters())
    if (!spec.frozen) reached[spec.node] = true;
  for (const Node& node : nodes_)
    for (const NodeId input : node.inputs)
      if (reached[input]) reached[node.id] = true;
  return reached;
}

std::vector<ParameterSpec> Network::parameters() const {
  std::vector<ParameterSpec> list;
  const auto append = [&list](const Node& node, Role role, std::vector<std::int64_t> dims) {
    const bool is_weight = role == Role::weight || role == Role::norm_weight;
    list.push_back({.name = node.name + (is_weight ? ".weight" : ".bias"),
                    .node = node.id,
                    .role = role,
                    .dims = std::move(dims),
                    .frozen = node.frozen});
  };
  for (const Node& node : nodes_) {
    if (const auto* c = std::get_if<Convolution>(&node.layer)) {
      append(node, Role::weight,
             {c->channels, input_shape(node).channels / c->groups, c->kernel, c->kernel});
      if (c->bias) append(node, Role::bias, {c->channels});
    } else if (std::holds_alternative<BatchNorm>(node.layer)) {
      append(node, Role::norm_weight, {node.shape.channels});
      append(node, Role::norm_bias, {node.shape.channels});
    } else if (const auto* d = std::get_if<Dense>(&node.layer)) {
      append(node, Role::weight, {d->features, std::int64_t(input_shape(node).count())});
      if (d->bias) append(node, Role::bias, {d->features});
    }
  }
  return list;
}

std::size_t Network::parameter_count() const {
  std::size_t count = 0;
  for (const ParameterSpec& spec : parameters()) count += spec.count();
  return count;
}

double Network::forward_flops(const Node& node) const {
  if (const auto* c = std::get_if<Convolution>(&node.layer))
    return double(node.shape.count()) * (input_shape(node).channels / c->groups) * c->kernel *
           c->kernel;
  if (std::holds_alternative<Dense>(node.layer))
    return double(node.shape.count()) * double(input_shape(node).count());
  return 0;
}

double Network::forward_flops() const {
  double flops = 0;
  for (const Node& node : nodes_) flops += forward_flops(node);
  return flops;
}

}  // namespace convoy
