// Where buffers lie in one arena, given when each is in use.
#pragma once

#include <cstddef>
#include <vector>

namespace convoy {

struct Lifetime {
  std::size_t bytes = 0;
  int first = 0, last = 0;  // times of first and last use, both included
  std::size_t offset = 0;   // decided by place_buffers
};

// Gives each buffer an offset (a multiple of 64) so that buffers in use at the same time do not
// overlap; largest first, each at the lowest place that is free for all of its life. Returns the
// arena's size.
std::size_t place_buffers(std::vector<Lifetime>& buffers);

}  // namespace convoy
