// A batch as a network reads it.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy {

struct Batch {
  std::vector<float> images;  // normalised, NCHW, size() images
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t>
      samples;  // each image's index in its data set: keys dropout and the data ledger
  std::uint32_t epoch = 0;

  int size() const { return int(labels.size()); }
};

}  // namespace convoy
