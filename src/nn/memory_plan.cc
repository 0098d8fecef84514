#include "nn/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace convoy {

std::size_t place_buffers(std::vector<Lifetime>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return buffers[a].bytes > buffers[b].bytes;
  });
  std::vector<std::size_t> placed;  // sorted by offset
  std::size_t arena = 0;
  for (std::size_t i : order) {
    Lifetime& buffer = buffers[i];
    buffer.bytes = (buffer.bytes + 63) / 64 * 64;
    std::size_t offset = 0;
    for (std::size_t j : placed) {
      const Lifetime& other = buffers[j];
      const bool meet = buffer.first <= other.last && other.first <= buffer.last;
      if (!meet) continue;
      if (offset + buffer.bytes <= other.offset) break;
      offset = std::max(offset, other.offset + other.bytes);
    }
    buffer.offset = offset;
    arena = std::max(arena, offset + buffer.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](std::size_t a, std::size_t b) {
                                     return buffers[a].offset < buffers[b].offset;
                                   }),
                  i);
  }
  return arena;
}

}  // namespace convoy
