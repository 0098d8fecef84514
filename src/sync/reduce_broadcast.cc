// Everybody sends all to the first rank, which adds it up and sends the sum to everybody: what
// programs do that know no better. The first rank's link carries 2(N-1) times the buffer.
#include "sync/algorithms.h"

namespace convoy {

void reduce_broadcast(const Operation& operation, std::span<std::byte> buffer) {
  const int n = operation.size();
  if (operation.index() != 0) {
    exchange(operation, operation.peer(0), buffer, {}, Arrival::replace);
    exchange(operation, operation.peer(0), {}, buffer, Arrival::replace);
    return;
  }
  for (int other = 1; other < n; ++other)
    exchange(operation, operation.peer(other), {}, buffer, Arrival::add);
  operation.apply_factor(buffer);
  for (int other = 1; other < n; ++other)
    exchange(operation, operation.peer(other), buffer, {}, Arrival::replace);
}

}  // namespace convoy
