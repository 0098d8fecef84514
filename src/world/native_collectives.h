// Collectives that a transport's own library has, for comparison and for fabrics that do them in
// hardware.
#pragma once

#include <cstdint>
#include <span>

namespace convoy {

class NativeCollectives {
 public:
  virtual ~NativeCollectives() = default;
  // In place, over all ranks, in the order in which every rank calls them. When the time is over,
  // the reason goes to standard error and the job is ended: a library's call cannot be left.
  virtual void sum(std::span<float> values, double timeout_s) = 0;
  virtual void sum(std::span<std::int64_t> values, double timeout_s) = 0;
  virtual void max(std::span<std::int64_t> values, double timeout_s) = 0;
};

}  // namespace convoy
