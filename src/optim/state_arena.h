// Zeroed floats for an optimizer's state, on 2 MB pages where there are enough of them: a pass over
// a large arena otherwise spends its time in page walks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace convoy {

class StateArena {
 public:
  explicit StateArena(std::size_t count);
  std::span<float> span() { return {floats_.get(), count_}; }

 private:
  struct Free {
    void operator()(float* floats) const;
  };
  std::size_t count_;
  std::unique_ptr<float[], Free> floats_;
};

}  // namespace convoy
