#include "data/open.h"

#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "data/cifar10.h"
#include "data/image_folder.h"
#include "data/mnist.h"
#include "data/synthetic.h"

namespace convoy {
namespace {

Cut train_cut(const DataOptions& options) {
  return {options.limit, options.train_part.index, options.train_part.of};
}
Cut test_cut(const DataOptions& options) {
  return {0, options.test_part.index, options.test_part.of};
}

DataSplit open_mnist_like(const DataOptions& options, MnistFiles files) {
  files.folder = options.root / files.name;
  files.open = options.open_bytes;
  return {open_mnist(files, MnistPart::train, train_cut(options)),
          open_mnist(files, MnistPart::test, test_cut(options))};
}

DataSplit open_mnist_set(const DataOptions& options) { return open_mnist_like(options, {}); }

DataSplit open_fashion_mnist(const DataOptions& options) {
  return open_mnist_like(
      options, {.folder = {}, .name = "fashion-mnist", .mean = 0.2860f, .deviation = 0.3530f});
}

DataSplit open_cifar10_set(const DataOptions& options) {
  const CifarFiles files{.folder = options.root / "cifar10", .open = options.open_bytes};
  return {open_cifar10(files, CifarPart::train, train_cut(options)),
          open_cifar10(files, CifarPart::test, test_cut(options))};
}

DataSplit open_synthetic(const DataOptions& options) {
  const SyntheticSpec spec = parse_synthetic(options.name);
  return {make_synthetic(spec, SyntheticPart::train, options.seed, train_cut(options)),
          make_synthetic(spec, SyntheticPart::test, options.seed, test_cut(options))};
}

DataSplit open_folder(const DataOptions& options) {
  const bool unset = options.image_size == Shape{};
  ImageFolderSplit split =
      open_image_folder(options.name, unset ? Shape{3, 224, 224} : options.image_size,
                        train_cut(options), test_cut(options));
  return {std::move(split.train), std::move(split.test)};
}

struct NamedSet {
  std::string name;
  DataSplit (*open)(const DataOptions&);
};

const std::vector<NamedSet>& named_sets() {
  static const std::vector<NamedSet> sets = {
      {"mnist", open_mnist_set},
      {"fashion-mnist", open_fashion_mnist},
      {"cifar10", open_cifar10_set},
      {"synthetic", open_synthetic},
  };
  return sets;
}

[[noreturn]] void unknown_name(const std::string& name) {
  std::vector<std::string> known;
  for (const NamedSet& set : named_sets()) known.push_back(set.name);
  throw ConfigError(
      "--data {}: unknown data set; did you mean {}? Known: mnist, fashion-mnist, cifar10, "
      "synthetic:CxHxW:CLASSES:COUNT, or a folder that has train/CLASS/*.jpg",
      name.empty() ? "\"\"" : name, nearest(name.substr(0, name.find(':')), known));
}

// Every complaint about a set that `convoy data get` fetches ends with that remedy, for the root in
// use.
DataSplit open_fetched(const NamedSet& set, const DataOptions& options) {
  try {
    return set.open(options);
  } catch (const DataError& error) {
    std::string text = error.what();
    const std::string remedy = "; run: convoy data get " + set.name;
    if (!text.ends_with(remedy)) text += remedy;
    if (options.root != "data") text += " --root " + options.root.string();
    throw DataError(text);
  }
}

}  // namespace

DataSplit open_data(const DataOptions& options) {
  const std::string kind = options.name.substr(0, options.name.find(':'));
  for (const NamedSet& set : named_sets())
    if (options.name == set.name || (kind == set.name && kind == "synthetic"))
      return open_fetched(set, options);
  std::error_code ignored;
  if (std::filesystem::is_directory(options.name, ignored)) return open_folder(options);
  if (options.name.find('/') != std::string::npos)
    throw DataError(
        "{}: not found; --data takes a folder that has train/CLASS/*.jpg, or the name of a set",
        options.name);
  unknown_name(options.name);
}

}  // namespace convoy
