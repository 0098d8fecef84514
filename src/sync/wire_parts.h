// What the wire formats have in common, and each of them by name. For wire_*.cc only.
#pragma once

#include <cstddef>
#include <memory>

#include "base/check.h"
#include "sync/wire_code.h"
#include "sync/wire_format.h"

namespace convoy {

std::unique_ptr<WireFormat> make_wire_bf16(std::size_t arena_size);
std::unique_ptr<WireCode> make_code_bf16();
std::unique_ptr<WireCode> make_code_topk(double share);
std::unique_ptr<WireCode> make_code_1bit();

// Of an all-reduce by a ring: every rank passes on all chunks but one, twice.
inline std::size_t ring_bytes(std::size_t bytes, int ranks) {
  const std::size_t n = std::size_t(ranks);
  return (2 * (n - 1) * bytes + n - 1) / n;
}

}  // namespace convoy
