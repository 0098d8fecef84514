#include "nn/checkpoint_weights.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "nn/checkpoint_metadata.h"

namespace convoy {
namespace {

std::vector<std::int64_t> buffer_dims(const Buffer& buffer) {
  return {std::int64_t(buffer.values.size())};
}

std::string shape_text(const std::vector<std::int64_t>& dims) {
  return dims.empty() ? "one number" : fmt::format("{}", fmt::join(dims, "x"));
}

// How a tensor of the file differs from what is wanted; empty where it does not.
std::string difference(const StoredTensor* tensor, const std::vector<std::int64_t>& dims) {
  if (tensor == nullptr) return "is missing";
  if (tensor->dims != dims)
    return fmt::format("is {} instead of {}", shape_text(tensor->dims), shape_text(dims));
  if (tensor->dtype != "F32") return fmt::format("is {} instead of F32", tensor->dtype);
  return {};
}

// Tensors of torchvision's files that no network here has.
bool is_foreign(const std::string& name) {
  return name.ends_with(".num_batches_tracked") || name.starts_with("aux1.") ||
         name.starts_with("aux2.");
}

std::string network_text(const std::string& model, const Shape& input, int classes) {
  return fmt::format("{} at {} with {} classes", model, input.to_string(), classes);
}

// The last layer that has parameters.
NodeId head_node(const Parameters& parameters) {
  NodeId head = 0;
  for (const Parameter& parameter : parameters.list()) head = std::max(head, parameter.spec.node);
  return head;
}

// Gathers differences, and turns them into one line.
class Differences {
 public:
  void add(const std::string& tensor, const std::string& text, bool of_head) {
    if (count_++ == 0) first_ = fmt::format("tensor '{}' {}", printable(tensor), text);
    only_head_ = only_head_ && of_head;
  }

  void throw_if_any(const SafetensorsFile& file, const Network& network) const {
    if (count_ == 0) return;
    std::string text =
        fmt::format("{}: does not fit {}: {}", file.name(),
                    network_text(network.name(), network.input_shape(), network.classes()), first_);
    if (count_ == 2) text += ", and one more tensor differs";
    if (count_ > 2) text += fmt::format(", and {} more tensors differ", count_ - 1);
    if (file.metadata().contains("model")) {
      const auto field = [&](const char* key) {
        const auto found = file.metadata().find(key);
        return found == file.metadata().end() ? std::string("?") : printable(found->second);
      };
      text += fmt::format("; the file has {} at {} with {} classes", field("model"), field("input"),
                          field("classes"));
    }
    if (only_head_) text += "; --init takes it and leaves the head fresh";
    throw DataError(text);
  }

 private:
  std::size_t count_ = 0;
  std::string first_;
  bool only_head_ = true;
};

}  // namespace

void write_weights(const std::filesystem::path& path, const Network& network,
                   const Parameters& parameters, const std::string& digest) {
  std::vector<TensorSpec> specs;
  // Against the arena's order, so that the first layer comes first.
  const auto list = parameters.list();
  for (auto parameter = list.rbegin(); parameter != list.rend(); ++parameter)
    specs.push_back({.name = parameter->spec.name, .dims = parameter->spec.dims});
  for (const Buffer& buffer : parameters.buffers())
    specs.push_back({.name = buffer.name, .dims = buffer_dims(buffer)});
  SafetensorsWriter writer(path, specs,
                           {{"format", "pt"},
                            {kVersionKey, std::to_string(kCheckpointVersion)},
                            {kDigestKey, digest},
                            {"model", network.name()},
                            {"input", network.input_shape().to_string()},
                            {"classes", std::to_string(network.classes())}});
  std::vector<float> plain;
  for (auto parameter = list.rbegin(); parameter != list.rend(); ++parameter) {
    plain.resize(parameter->spec.count());
    parameters.export_values(*parameter, plain);
    writer.write(std::span<const float>(plain));
  }
  for (const Buffer& buffer : parameters.buffers())
    writer.write(std::span<const float>(buffer.values));
  writer.commit();
}

WeightsPlan plan_weights(const SafetensorsFile& file, const Network& network,
                         const Parameters& parameters, LoadMode mode) {
  WeightsPlan plan;
  Differences differences;
  std::unordered_set<std::string> known;
  const NodeId head = head_node(parameters);
  const auto list = parameters.list();
  // The parts of a head stay or go together.
  const bool leaves_head =
      mode == LoadMode::transfer && std::any_of(list.begin(), list.end(), [&](const Parameter& p) {
        return p.spec.node == head && !difference(file.find(p.spec.name), p.spec.dims).empty();
      });
  for (auto p = list.rbegin(); p != list.rend(); ++p) {
    known.insert(p->spec.name);
    const StoredTensor* tensor = file.find(p->spec.name);
    const std::string text = difference(tensor, p->spec.dims);
    if (leaves_head && p->spec.node == head)
      plan.left.push_back(p->spec.name);
    else if (text.empty())
      plan.parameters.emplace_back(&*p, tensor);
    else
      differences.add(p->spec.name, text, p->spec.node == head);
  }
  for (std::size_t i = 0; i < parameters.buffers().size(); ++i) {
    const Buffer& buffer = parameters.buffers()[i];
    known.insert(buffer.name);
    const StoredTensor* tensor = file.find(buffer.name);
    const std::string text = difference(tensor, buffer_dims(buffer));
    if (text.empty())
      plan.buffers.emplace_back(i, tensor);
    else
      differences.add(buffer.name, text, false);
  }
  const std::string head_prefix = network.node(head).name + ".";
  for (const StoredTensor& tensor : file.tensors()) {
    const bool of_head = tensor.name.starts_with(head_prefix);
    if (!known.contains(tensor.name) && !is_foreign(tensor.name) && !(leaves_head && of_head))
      differences.add(tensor.name, "is not one of its own", of_head);
  }
  differences.throw_if_any(file, network);
  return plan;
}

void read_weights(const SafetensorsFile& file, const WeightsPlan& plan, Parameters& parameters) {
  std::vector<float> plain;
  for (const auto& [parameter, tensor] : plan.parameters) {
    plain.resize(parameter->spec.count());
    file.read(*tensor, plain);
    parameters.import_values(*parameter, plain);
  }
  // In place: the kernels hold pointers to these numbers.
  for (const auto& [index, tensor] : plan.buffers)
    file.read(*tensor, parameters.buffers()[index].values);
}

void check_tensor(const SafetensorsFile& file, const StoredTensor& tensor,
                  const std::vector<std::int64_t>& dims) {
  const std::string text = difference(&tensor, dims);
  if (!text.empty())
    throw DataError("{}: tensor '{}' {}", file.name(), printable(tensor.name), text);
}

CheckpointInfo read_checkpoint_info(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  check_version(file);
  if (!file.metadata().contains("model")) return {};
  CheckpointInfo info{.model = printable(metadata_text(file, "model")),
                      .input = {},
                      .classes = metadata_number<int>(file, "classes")};
  try {
    info.input = parse_shape(printable(metadata_text(file, "input")), "input");
  } catch (const ConfigError& error) {
    throw DataError("{}: in its metadata, {}", file.name(), error.what());
  }
  return info;
}

}  // namespace convoy
