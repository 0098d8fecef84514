#include "nn/zoo.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/nearest.h"
#include "nn/zoo_networks.h"

namespace convoy {
namespace {

struct Row {
  std::string name;
  Network (*make)(const std::string& name, Shape input, int classes);
  Shape input;
  int classes;
  std::string studies;
};

constexpr Shape kMnist{1, 28, 28};
constexpr Shape kCifar{3, 32, 32};
constexpr Shape kImageNet{3, 224, 224};

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      {"shallow", make_shallow, kMnist, 10, "MNIST (pani2020)"},
      {"mnist_cnn", make_mnist_cnn, kMnist, 10, "MNIST (wang2020)"},
      {"airbench", make_airbench, kCifar, 10, "CIFAR-10 (jordan2024)"},
      {"airbench_wide", make_airbench, kCifar, 10, "CIFAR-10, to 94 % and more"},
      {"resnet18", make_resnet, kImageNet, 1000, "MNIST (pani2020), CIFAR-10 (jia2021)"},
      {"resnet34", make_resnet, kImageNet, 1000, "ImageNet"},
      {"resnet50", make_resnet, kImageNet, 1000, "CIFAR-10 (shi2019), ImageNet (nchc2019)"},
      {"resnet101", make_resnet, kImageNet, 1000, "ImageNet"},
      {"resnet152", make_resnet, kImageNet, 1000, "CIFAR-10 (shi2019)"},
      {"inception_v1", make_inception_v1, kImageNet, 1000, "CIFAR-10 (jia2021)"},
      {"alexnet", make_alexnet, kImageNet, 1000, "CIFAR-10 (shi2019)"},
      {"vgg16", make_vgg, kImageNet, 1000, "CIFAR-10 (shi2019)"},
      {"vgg19", make_vgg, kImageNet, 1000, "CIFAR-10 (shi2019)"},
  };
  return rows;
}

const Row& row(const std::string& name) {
  for (const Row& row : table())
    if (row.name == name) return row;
  throw ConfigError("unknown model '{}'; did you mean {}? There are {}", name,
                    nearest(name, zoo_names()), fmt::join(zoo_names(), ", "));
}

}  // namespace

const std::vector<std::string>& zoo_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Row& row : table()) list.push_back(row.name);
    return list;
  }();
  return names;
}

Network make_network(const std::string& name, Shape input, int classes) {
  const Row& found = row(name);
  if (classes < 1) throw ConfigError("{}: classes must be at least 1, not {}", name, classes);
  return found.make(name, input, classes);
}

Shape zoo_default_input(const std::string& name) { return row(name).input; }
int zoo_default_classes(const std::string& name) { return row(name).classes; }
const std::string& zoo_studies(const std::string& name) { return row(name).studies; }

}  // namespace convoy
