#include "nn/onnx.h"

#include <vector>

#include "base/error.h"
#include "base/protobuf.h"

namespace convoy {
namespace {

// Of onnx.proto: the numbers of fields and kinds.
constexpr int kIrVersion = 7, kOpset = 13;
constexpr int kFloat = 1;  // TensorProto.DataType
constexpr int kAttributeFloat = 1, kAttributeInt = 2, kAttributeInts = 7;

class OnnxGraph {
 public:
  OnnxGraph(const Network& network, const Parameters& parameters)
      : network_(network), parameters_(parameters), outputs_(network.nodes().size()) {}

  std::string model() {
    outputs_[0] = "input";
    for (const Node& node : network_.nodes())
      if (node.id > 0) std::visit([&](const auto& layer) { add(node, layer); }, node.layer);
    finish_output();
    graph_.text(2, network_.name());
    describe(11, "input", dims_of(network_.input_shape()));
    describe(12, "logits", {network_.classes()});
    ProtobufWriter opset, model;
    opset.text(1, "");
    opset.number(2, kOpset);
    model.number(1, kIrVersion);
    model.text(2, "convoy");
    model.message(7, graph_);
    model.message(8, opset);
    return model.bytes();
  }

 private:
  // An operator under construction.
  struct Op {
    explicit Op(const std::string& kind) { writer.text(4, kind); }
    Op& in(const std::string& name) {
      writer.text(1, name);
      return *this;
    }
    Op& number(const std::string& name, std::int64_t value) {
      ProtobufWriter attribute;
      attribute.text(1, name);
      attribute.number(3, value);
      return finish(attribute, kAttributeInt);
    }
    Op& real(const std::string& name, float value) {
      ProtobufWriter attribute;
      attribute.text(1, name);
      attribute.real(2, value);
      return finish(attribute, kAttributeFloat);
    }
    Op& numbers(const std::string& name, const std::vector<std::int64_t>& values) {
      ProtobufWriter attribute;
      attribute.text(1, name);
      for (const std::int64_t value : values) attribute.number(8, value);
      return finish(attribute, kAttributeInts);
    }
    Op& finish(ProtobufWriter& attribute, int kind) {
      attribute.number(20, kind);
      writer.message(5, attribute);
      return *this;
    }
    ProtobufWriter writer;
  };

  static std::vector<std::int64_t> dims_of(const Shape& shape) {
    return {shape.channels, shape.height, shape.width};
  }
  static Op window(const char* kind, int kernel, int stride, int padding) {
    Op op(kind);
    op.numbers("kernel_shape", {kernel, kernel})
        .numbers("strides", {stride, stride})
        .numbers("pads", {padding, padding, padding, padding});
    return op;
  }

  // An input or output of the graph: floats, any number of images.
  void describe(int field, const std::string& name, const std::vector<std::int64_t>& dims) {
    ProtobufWriter shape, batch;
    batch.text(2, "N");
    shape.message(1, batch);
    for (const std::int64_t size : dims) {
      ProtobufWriter dim;
      dim.number(1, size);
      shape.message(1, dim);
    }
    ProtobufWriter tensor, type, value;
    tensor.number(1, kFloat);
    tensor.message(2, shape);
    type.message(1, tensor);
    value.text(1, name);
    value.message(2, type);
    graph_.message(field, value);
  }

  std::string constant(const std::string& name, const std::vector<std::int64_t>& dims,
                       std::span<const float> values) {
    ProtobufWriter tensor;
    for (const std::int64_t size : dims) tensor.number(1, size);
    tensor.number(2, kFloat);
    tensor.text(8, name);
    tensor.text(9, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
    graph_.message(5, tensor);
    return name;
  }
  std::string parameter(const Node& node, Role role) {
    const Parameter& found = *parameters_.find(node.id, role);
    std::vector<float> plain(found.spec.count());
    parameters_.export_values(found, plain);
    return constant(found.spec.name, found.spec.dims, plain);
  }
  std::string buffer(const Node& node, const std::string& name) {
    for (const Buffer& one : parameters_.buffers())
      if (one.name == node.name + name)
        return constant(one.name, {std::int64_t(one.values.size())}, one.values);
    throw ConfigError("layer {} has no {}", node.name, name);
  }

  std::string input(const Node& node, std::size_t which = 0) const {
    return outputs_[std::size_t(node.inputs[which])];
  }
  std::string put(Op& op, const std::string& name) {
    op.writer.text(2, name);
    op.writer.text(3, name);
    graph_.message(1, op.writer);
    return name;
  }
  // The operator is the node's, a ReLU follows where it was folded into it.
  void put(Op& op, const Node& node, bool relu = false) {
    outputs_[std::size_t(node.id)] = put(op, node.name);
    if (!relu) return;
    Op after("Relu");
    after.in(node.name);
    outputs_[std::size_t(node.id)] = put(after, node.name + ".relu");
  }

  void add(const Node&, const Input&) {}
  void add(const Node& node, const Convolution& layer) {
    Op op = window("Conv", layer.kernel, layer.stride, layer.padding);
    op.number("group", layer.groups).in(input(node)).in(parameter(node, Role::weight));
    if (layer.bias) op.in(parameter(node, Role::bias));
    put(op, node, layer.relu);
  }
  void add(const Node& node, const BatchNorm& layer) {
    Op op("BatchNormalization");
    op.real("epsilon", layer.epsilon).in(input(node));
    op.in(parameter(node, Role::norm_weight)).in(parameter(node, Role::norm_bias));
    op.in(buffer(node, ".running_mean")).in(buffer(node, ".running_var"));
    put(op, node, layer.relu);
  }
  void add(const Node& node, const Relu&) {
    Op op("Relu");
    op.in(input(node));
    put(op, node);
  }
  void add(const Node& node, const MaxPool& layer) {
    Op op = window("MaxPool", layer.kernel, layer.stride, layer.padding);
    op.number("ceil_mode", layer.ceil_mode).in(input(node));
    put(op, node, layer.relu);
  }
  void add(const Node& node, const AveragePool& layer) {
    Op op = window("AveragePool", layer.kernel, layer.stride, layer.padding);
    op.number("ceil_mode", layer.ceil_mode)
        .number("count_include_pad", layer.count_padding)
        .in(input(node));
    put(op, node);
  }
  // ONNX knows it only for maps that divide evenly.
  void add(const Node& node, const AdaptiveAveragePool& layer) {
    const Shape from = network_.input_shape(node);
    if (from.height == layer.height && from.width == layer.width) {
      outputs_[std::size_t(node.id)] = input(node);
      return;
    }
    if (from.height % layer.height != 0 || from.width % layer.width != 0)
      throw ConfigError(
          "layer {} averages a map of {}x{} into one of {}x{}, which ONNX cannot express: choose "
          "an "
          "--input that divides evenly",
          node.name, from.height, from.width, layer.height, layer.width);
    const std::int64_t height = from.height / layer.height, width = from.width / layer.width;
    Op op("AveragePool");
    op.numbers("kernel_shape", {height, width}).numbers("strides", {height, width}).in(input(node));
    put(op, node);
  }
  void add(const Node& node, const Dense& layer) {
    Op flat("Flatten");
    flat.in(input(node));
    Op op("Gemm");
    op.number("transB", 1).in(put(flat, node.name + ".flat")).in(parameter(node, Role::weight));
    if (layer.bias) op.in(parameter(node, Role::bias));
    put(op, node, layer.relu);
  }
  void add(const Node& node, const Dropout&) { outputs_[std::size_t(node.id)] = input(node); }
  void add(const Node& node, const Concat&) {
    Op op("Concat");
    op.number("axis", 1);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) op.in(input(node, i));
    put(op, node);
  }
  void add(const Node& node, const Add& layer) {
    Op op("Add");
    op.in(input(node, 0)).in(input(node, 1));
    put(op, node, layer.relu);
  }
  void add(const Node& node, const LocalResponseNorm& layer) {
    Op op("LRN");
    op.number("size", layer.size)
        .real("alpha", layer.alpha)
        .real("beta", layer.beta)
        .real("bias", layer.k)
        .in(input(node));
    put(op, node);
  }

  // The last layer's output as one row of logits per image.
  void finish_output() {
    std::string last = outputs_.back();
    if (network_.output_scale() != 1) {
      Op scale("Mul");
      const float factor = network_.output_scale();
      scale.in(last).in(constant("output_scale", {1}, {&factor, 1}));
      last = put(scale, "scaled");
    }
    Op flat("Flatten");
    flat.in(last);
    put(flat, "logits");
  }

  const Network& network_;
  const Parameters& parameters_;
  std::vector<std::string> outputs_;  // by node
  ProtobufWriter graph_;
};

}  // namespace

std::string onnx_model(const Network& network, const Parameters& parameters) {
  return OnnxGraph(network, parameters).model();
}

}  // namespace convoy
