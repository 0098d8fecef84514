#include "base/float_arena.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/check.h"

namespace convoy {

FloatArena::FloatArena(std::size_t count) : count_(count) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t bytes = count * sizeof(float);
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const std::size_t padded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, padded == 0 ? alignment : padded);
  if (memory == nullptr) throw std::bad_alloc();
  // A kernel without huge pages refuses, and small pages serve as well.
  if (alignment == kHugePage) ::madvise(memory, padded, MADV_HUGEPAGE);
  std::memset(memory, 0, padded);
  own_.reset(static_cast<float*>(memory));
  place_ = own_.get();
}

void FloatArena::place(std::span<float> memory) {
  CHECK(memory.size() == count_, "room for {} floats, not {}", memory.size(), count_);
  own_.reset();
  place_ = memory.data();
}

void FloatArena::Free::operator()(float* floats) const { std::free(floats); }

}  // namespace convoy
