// Recursive halving and doubling (Thakur, Rabenseifner, Gropp 2005): 2 log2 N exchanges instead of
// the ring's 2(N-1), each with another partner.
//
// Among P ranks, a power of two: partners at distance P/2 exchange the halves of the buffer that
// they do not keep and add; then at distance P/4 the quarters, and so on, until every rank has the
// sum of 1/P of the buffer. Then the same way back, without adding. Where N is no power of two, the
// N-P ranks too many first give all they have to a partner each, and get the result from it at
// the end.
#include <array>

#include "sync/algorithms.h"

namespace convoy {
namespace {

void halve_and_double(const Operation& operation, int ranks, std::span<std::byte> buffer) {
  const int i = operation.index();
  const std::size_t width = operation.width();
  struct Halving {
    int partner;
    std::span<std::byte> kept;
    std::span<std::byte> given;
  };
  std::array<Halving, 32> halvings{};
  std::size_t depth = 0;
  std::span<std::byte> part = buffer;
  for (int distance = ranks / 2; distance > 0; distance /= 2) {
    const std::size_t half = part.size() / width / 2 * width;
    const bool low = (i & distance) == 0;
    const std::span<std::byte> first = part.first(half), second = part.subspan(half);
    Halving& step = halvings[depth++];
    step = {operation.peer(i ^ distance), low ? first : second, low ? second : first};
    exchange(operation, step.partner, step.given, step.kept, Arrival::add);
    part = step.kept;
  }
  operation.apply_factor(part);
  while (depth > 0) {
    const Halving& step = halvings[--depth];
    exchange(operation, step.partner, step.kept, step.given, Arrival::replace);
  }
}

}  // namespace

void halving_doubling(const Operation& operation, std::span<std::byte> buffer) {
  const int n = operation.size(), i = operation.index();
  int ranks = 1;
  while (ranks * 2 <= n) ranks *= 2;
  if (i >= ranks) {
    const int partner = operation.peer(i - ranks);
    exchange(operation, partner, buffer, {}, Arrival::replace);
    exchange(operation, partner, {}, buffer, Arrival::replace);
    return;
  }
  const bool has_partner = i + ranks < n;
  if (has_partner) exchange(operation, operation.peer(i + ranks), {}, buffer, Arrival::add);
  halve_and_double(operation, ranks, buffer);
  if (has_partner) exchange(operation, operation.peer(i + ranks), buffer, {}, Arrival::replace);
}

}  // namespace convoy
