// Values that are made by the layer that reads them first, part by part and shortly before it reads
// each: so they are still in the cache then, and memory is passed over once less. A batch norm
// leaves its output, and backward the gradient of its input, to the convolution that comes next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/amx/layout.h"

namespace convoy::amx {

// What is left to do. All values are of one layout, and rows that pad become zero. By lanes,
//   forward (b is null):  to = largest(a * x + more + c, floor), where `more` may be null;
//   backward:             to = a * x + b * more + c, where x counts as zero unless
//                         scale * more + shift is positive (scale may be null: always counts).
struct Making {
  const Bf16* x = nullptr;
  const Bf16* more = nullptr;
  Bf16* to = nullptr;  // may be x
  const float* a = nullptr;
  const float* b = nullptr;
  const float* c = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;
  float floor = -std::numeric_limits<float>::infinity();
};

void make_blocks(const Layout& layout, const Making& making, int lot, int plane, int first,
                 int last);
void make_value(const Layout& layout, const Making& making);  // all of it

// What the units of a product (target blocks, chunks; counted over all lots, in the order of work)
// read of its source, in blocks counted over all lots. Each has one more than there are units.
struct SourceReads {
  std::vector<std::int32_t> until;  // units before u read blocks before until[u] only
  std::vector<std::int32_t> from;   // units from u on read blocks from from[u] on only

  // Of units that read blocks [first, last) each, in order; `blocks` are all.
  struct Range {
    std::int32_t first, last;
  };
  static SourceReads of(const std::vector<Range>& units, std::int32_t blocks);
};

}  // namespace convoy::amx
