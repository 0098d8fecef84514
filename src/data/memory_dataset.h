// A data set whose images are all in memory, one after the other.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "data/dataset.h"

namespace convoy {

struct MemoryImages {
  Shape shape;
  int classes = 10;
  std::vector<std::uint8_t> bytes;   // image i begins at i * shape.count()
  std::vector<std::uint8_t> labels;  // one per image
  std::vector<float> mean;
  std::vector<float> deviation;
  std::size_t first = 0;       // of a part: its place in the whole set,
  std::size_t whole_size = 0;  // which has so many; 0: this is the whole set
};

class MemoryDataset final : public Dataset {
 public:
  // `bytes` must hold an image for each label.
  explicit MemoryDataset(MemoryImages images);

  std::size_t size() const override { return images_.labels.size(); }
  std::size_t first() const override { return images_.first; }
  std::size_t whole_size() const override {
    return images_.whole_size > 0 ? images_.whole_size : size();
  }
  Shape shape() const override { return images_.shape; }
  int classes() const override { return images_.classes; }
  int label(std::size_t index) const override { return images_.labels[index]; }
  void read(std::size_t index, std::span<std::uint8_t> image) const override;
  bool in_memory() const override { return true; }
  std::vector<float> mean() const override { return images_.mean; }
  std::vector<float> deviation() const override { return images_.deviation; }

 private:
  MemoryImages images_;
};

}  // namespace convoy
