// From a name on the command line to a data set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "data/dataset.h"

namespace convoy {

struct DataOptions {
  std::string
      name;  // mnist, fashion-mnist, cifar10, synthetic:CxHxW:CLASSES:COUNT, or a folder's path
  std::filesystem::path root =
      "data";             // where `convoy data get` puts things: root/mnist, root/cifar10, ...
  std::size_t limit = 0;  // first N training samples; 0 means all
  Shape image_size = {};  // for folders: what images are resized and cropped to; {} means 3x224x224
  std::uint64_t seed = 1;  // synthetic
};

struct DataSplit {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;
};

// Throws DataError or ConfigError whose text names the file, what is wrong and the remedy.
DataSplit open_data(const DataOptions& options);

}  // namespace convoy
