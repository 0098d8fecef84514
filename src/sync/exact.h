// A sum whose bits depend neither on the algorithm, nor on the number of ranks, nor on who brought
// which part of it.
//
// The work of a step is cut into *shards*, whose number is fixed (64, say); a rank brings the
// values of one shard or several. Floating-point sums depend on their order; sums of integers do
// not. So, for every block of 64 Ki elements:
//   1. all ranks agree on the largest exponent E in the block, over all shards: every |x| < 2^E;
//   2. each value of each shard becomes the nearest integer in units of 2^(E-51), which fits into
//      52 bits with its sign; sums of up to 1,024 shards then fit into 62;
//   3. these are summed, in a rank and between ranks by any algorithm, without any error;
//   4. the sum becomes a float again, once.
// E is a maximum and the integers are sums: neither knows an order. A value loses only what is
// smaller than 2^-51 of the largest in its block, so the result is closer to the true sum than
// an f32 sum in any order. Denormal numbers count as zero, in and out, as everywhere in Convoy.
//
// It sends 8 bytes an element where all_reduce sends 4.
#pragma once

#include <cstdint>
#include <span>

#include "sync/communicator.h"

namespace convoy {

inline constexpr int kMostShards = 1024;
inline constexpr std::size_t kExactBlock = std::size_t{1} << 16;  // elements with one exponent

// Every rank gives any number of shards, none included, each as long as `result`, and gets the sum
// of all shards of all ranks, or their mean. Throws DataError on every rank if one of them has a
// nan or an infinity, before any value is sent: the message names rank and element.
void all_reduce_exact(Communicator& communicator, std::span<const std::span<const float>> shards,
                      std::span<float> result, Reduction reduction = Reduction::sum);

// The parts of it, for those who bring shards together by other means.
// The largest absolute value, as the bits of a float: their order is that of the numbers. From
// 0x7f800000 on it is no finite number.
std::uint32_t largest_magnitude(std::span<const float> values);
// The E of a block whose largest value has these bits.
int exact_exponent(std::uint32_t most);
// Adds the integers nearest to values / 2^(E-51).
void add_exact(std::span<const float> values, int exponent, std::span<std::int64_t> sums);
void exact_to_floats(std::span<const std::int64_t> sums, int exponent, double divisor,
                     std::span<float> result);

}  // namespace convoy
