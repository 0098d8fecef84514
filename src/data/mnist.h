// MNIST and the sets that share its files (Fashion-MNIST): grey images and labels 0 to 9 in IDX,
// gzipped or not.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/dataset.h"

namespace convoy {

enum class MnistPart { train, test };

struct MnistFiles {
  std::filesystem::path folder;
  std::string name = "mnist";  // as `convoy data get` knows it
  float mean = 0.1307f;
  float deviation = 0.3081f;
};

// Reads both files of the part whole. Throws DataError that names the file, what is wrong and the
// remedy.
std::unique_ptr<Dataset> open_mnist(const MnistFiles& files, MnistPart part);

}  // namespace convoy
