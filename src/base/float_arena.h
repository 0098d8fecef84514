// Many floats in one piece, on 2 MB pages where there are enough of them: a pass over a large arena
// otherwise spends its time in page walks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace convoy {

class FloatArena {
 public:
  explicit FloatArena(std::size_t count);  // zeros, aligned to a cache line

  std::size_t size() const { return count_; }
  std::span<float> span() { return {place_, count_}; }
  std::span<const float> span() const { return {place_, count_}; }
  // From now on it is this memory, as large, which outlives it. What was in it is forgotten.
  void place(std::span<float> memory);

 private:
  struct Free {
    void operator()(float* floats) const;
  };
  std::size_t count_;
  std::unique_ptr<float[], Free> own_;  // null where it was placed elsewhere
  float* place_ = nullptr;
};

}  // namespace convoy
