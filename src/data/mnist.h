// MNIST and the sets that share its files (Fashion-MNIST): grey images and labels 0 to 9 in IDX,
// gzipped or not.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/byte_source.h"
#include "data/cut.h"
#include "data/dataset.h"

namespace convoy {

enum class MnistPart { train, test };

struct MnistFiles {
  std::filesystem::path folder;
  std::string name = "mnist";  // as `convoy data get` knows it
  float mean = 0.1307f;
  float deviation = 0.3081f;
  OpenBytes open = open_file_bytes;
};

// Reads what is wanted of both files. Throws DataError that names the file, what is wrong and the
// remedy.
std::unique_ptr<Dataset> open_mnist(const MnistFiles& files, MnistPart part, const Cut& cut = {});

}  // namespace convoy
