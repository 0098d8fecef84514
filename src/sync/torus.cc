// The two-dimensional torus: ranks stand in R rows of C. A ring in every row leaves each rank with
// one chunk of its row's sum; a ring in every column completes that chunk; a ring in every row
// passes the finished chunks on. As many bytes as one large ring, in 2(C-1) + 2(R-1) steps instead
// of 2(N-1).
//
// Where N has no divisor near its root (a prime, for one), the ranks that do not fit into the
// rectangle give what they have to a partner inside and get the result from it.
#include "sync/algorithms.h"

namespace convoy {
namespace {

struct Grid {
  int rows = 1;
  int columns = 1;
};

Grid grid_of(int ranks) {
  int root = 1;
  while ((root + 1) * (root + 1) <= ranks) ++root;
  for (int rows = root; rows > 1 && ranks / rows <= 4 * rows; --rows)
    if (ranks % rows == 0) return {rows, ranks / rows};
  return {root, ranks / root};
}

Group row_of(const Group& group, Grid grid) {
  const int row = group.index / grid.columns;
  Group members{.ranks = {}, .index = group.index % grid.columns};
  for (int column = 0; column < grid.columns; ++column)
    members.ranks.push_back(group.ranks[std::size_t(row * grid.columns + column)]);
  return members;
}

Group column_of(const Group& group, Grid grid) {
  const int column = group.index % grid.columns;
  Group members{.ranks = {}, .index = group.index / grid.columns};
  for (int row = 0; row < grid.rows; ++row)
    members.ranks.push_back(group.ranks[std::size_t(row * grid.columns + column)]);
  return members;
}

void run_grid(const Operation& operation, Grid grid, std::span<std::byte> buffer) {
  const Group row = row_of(*operation.group, grid), column = column_of(*operation.group, grid);
  Operation partial = operation.among(row);
  partial.factor = 1;
  const Range own = part_of(buffer.size() / operation.width(), row.size(), row.index);
  ring_reduce_scatter(partial, buffer);
  ring(operation.among(column),
       buffer.subspan(own.begin * operation.width(), own.count * operation.width()));
  ring_all_gather(partial, buffer);
}

}  // namespace

void torus(const Operation& operation, std::span<std::byte> buffer) {
  const Grid grid = grid_of(operation.size());
  const int inside = grid.rows * grid.columns, outside = operation.size() - inside;
  const int i = operation.index();
  if (i >= inside) {
    const int partner = operation.peer(i - inside);
    exchange(operation, partner, buffer, {}, Arrival::replace);
    exchange(operation, partner, {}, buffer, Arrival::replace);
    return;
  }
  if (i < outside) exchange(operation, operation.peer(i + inside), {}, buffer, Arrival::add);
  run_grid(operation, grid, buffer);
  if (i < outside) exchange(operation, operation.peer(i + inside), buffer, {}, Arrival::replace);
}

}  // namespace convoy
