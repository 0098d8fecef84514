// The weights' half of a checkpoint: how the tensors of a file and those of a network find each
// other.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nn/checkpoint.h"
#include "nn/safetensors.h"

namespace convoy {

void write_weights(const std::filesystem::path& path, const Network& network,
                   const Parameters& parameters, const std::string& digest);

// What will be read to where, once it is certain that all of it fits.
struct WeightsPlan {
  std::vector<std::pair<const Parameter*, const StoredTensor*>> parameters;
  std::vector<std::pair<std::size_t, const StoredTensor*>> buffers;  // by index
  std::vector<std::string> left;  // parameters that stay as they are
};

// Throws DataError where the file does not fit the network.
WeightsPlan plan_weights(const SafetensorsFile& file, const Network& network,
                         const Parameters& parameters, LoadMode mode);

void read_weights(const SafetensorsFile& file, const WeightsPlan& plan, Parameters& parameters);

// Throws DataError unless the tensor is F32 of this shape.
void check_tensor(const SafetensorsFile& file, const StoredTensor& tensor,
                  const std::vector<std::int64_t>& dims);

}  // namespace convoy
