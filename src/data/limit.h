// The first samples of another data set.
#pragma once

#include <memory>

#include "data/dataset.h"

namespace convoy {

class Limit final : public Dataset {
 public:
  // A limit beyond the inner set's size leaves it whole.
  Limit(std::unique_ptr<Dataset> inner, std::size_t limit);

  std::size_t size() const override { return size_; }
  Shape shape() const override { return inner_->shape(); }
  int classes() const override { return inner_->classes(); }
  int label(std::size_t index) const override { return inner_->label(index); }
  void read(std::size_t index, std::span<std::uint8_t> image) const override {
    inner_->read(index, image);
  }
  bool in_memory() const override { return inner_->in_memory(); }
  std::vector<float> mean() const override { return inner_->mean(); }
  std::vector<float> deviation() const override { return inner_->deviation(); }

 private:
  std::unique_ptr<Dataset> inner_;
  std::size_t size_;
};

}  // namespace convoy
