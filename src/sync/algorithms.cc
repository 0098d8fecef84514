#include "sync/algorithms.h"

#include <array>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"

namespace convoy {
namespace {

constexpr std::array kAlgorithms{
    Algorithm{"ring", ring, "fewest bytes; for large buffers on any network"},
    Algorithm{"halving_doubling", halving_doubling, "fewest steps at nearly the ring's bytes"},
    Algorithm{"tree", tree, "sums up a binary tree and back; for small buffers"},
    Algorithm{"reduce_broadcast", reduce_broadcast, "all to the first rank and back"},
    Algorithm{"torus", torus, "rings in the rows and columns of a rectangle of ranks"},
    Algorithm{"hierarchical", hierarchical, "shared memory on a host, rings among hosts"},
    Algorithm{"native", native, "the transport's own library, where it has one (MPI)"},
};
static_assert(kAlgorithms.size() <= 16, "a row's number has four bits on the wire");

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm& find_algorithm(std::string_view name) {
  for (const Algorithm& row : kAlgorithms)
    if (row.name == name) return row;
  std::vector<std::string> names;
  for (const Algorithm& row : kAlgorithms) names.emplace_back(row.name);
  throw ConfigError("unknown algorithm '{}': did you mean {}?", name,
                    nearest(std::string(name), names));
}

std::string algorithm_name(int row) {
  return row >= 0 && row < int(kAlgorithms.size()) ? std::string(kAlgorithms[std::size_t(row)].name)
                                                   : "a variant";
}

}  // namespace convoy
