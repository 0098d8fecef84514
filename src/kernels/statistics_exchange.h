// What a layer needs of other workers when its result depends on their samples too.
#pragma once

#include <span>

namespace convoy {

class StatisticsExchange {
 public:
  virtual ~StatisticsExchange() = default;
  // Adds up over all workers, in place: afterwards every worker has the same numbers, bit for bit.
  // Every worker calls it equally often, in the same order and with as many values, whatever the
  // size of its batch; on the thread that runs the graph. Blocks until the others have called.
  virtual void sum(std::span<double> values) = 0;
};

}  // namespace convoy
