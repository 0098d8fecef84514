// From a name on the command line to a data set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "data/byte_source.h"
#include "data/dataset.h"

namespace convoy {

// Of a set that is cut into `of` equal parts, one.
struct DataPart {
  int index = 0;
  int of = 1;
};

struct DataOptions {
  std::string
      name;  // mnist, fashion-mnist, cifar10, synthetic:CxHxW:CLASSES:COUNT, or a folder's path
  std::filesystem::path root =
      "data";             // where `convoy data get` puts things: root/mnist, root/cifar10, ...
  std::size_t limit = 0;  // first N training samples; 0 means all
  Shape image_size = {};  // for folders: what images are resized and cropped to; {} means 3x224x224
  std::uint64_t seed = 1;                  // synthetic
  DataPart train_part = {};                // only this part of the training samples is read,
  DataPart test_part = {};                 // and only this one of the others
  OpenBytes open_bytes = open_file_bytes;  // for the sets whose files are read in parts
};

struct DataSplit {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;
};

// Throws DataError or ConfigError whose text names the file, what is wrong and the remedy.
DataSplit open_data(const DataOptions& options);

}  // namespace convoy
