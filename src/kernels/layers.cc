#include "kernels/layers.h"

namespace convoy {
namespace {

struct Kind {
  std::string_view operator()(const Input&) const { return "input"; }
  std::string_view operator()(const Convolution&) const { return "convolution"; }
  std::string_view operator()(const BatchNorm&) const { return "batch norm"; }
  std::string_view operator()(const Relu&) const { return "relu"; }
  std::string_view operator()(const MaxPool&) const { return "max pool"; }
  std::string_view operator()(const AveragePool&) const { return "average pool"; }
  std::string_view operator()(const AdaptiveAveragePool&) const { return "adaptive average pool"; }
  std::string_view operator()(const Dense&) const { return "dense"; }
  std::string_view operator()(const Dropout&) const { return "dropout"; }
  std::string_view operator()(const Concat&) const { return "concat"; }
  std::string_view operator()(const Add&) const { return "add"; }
  std::string_view operator()(const LocalResponseNorm&) const { return "local response norm"; }
};

}  // namespace

std::string_view layer_kind(const Layer& layer) { return std::visit(Kind{}, layer); }

}  // namespace convoy
