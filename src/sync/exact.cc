#include "sync/exact.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kBlock = kExactBlock;
constexpr std::size_t kPiece = std::size_t{64} * kBlock;  // elements under way at a time
constexpr int kBits = 51;

// A maximum above any exponent says that a rank has a value that is not finite: bit 62, then the
// rank in 22 bits, then the element in 40.
constexpr std::int64_t kRefused = std::int64_t{1} << 62;
constexpr int kElementBits = 40;

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

double power_of_two(int exponent) {
  return std::bit_cast<double>(std::uint64_t(1023 + exponent) << 52);
}

[[noreturn]] void refuse(std::int64_t code) {
  const auto rank = (code & ~kRefused) >> kElementBits;
  const auto element = code & ((std::int64_t{1} << kElementBits) - 1);
  throw DataError("rank {}: element {} is not a finite number; nothing was reduced", rank, element);
}

// One value per block: the largest exponent so far, or why the block is refused.
std::vector<std::int64_t> exponents(int rank, std::span<const std::span<const float>> shards,
                                    std::size_t count) {
  std::vector<std::int64_t> found((count + kBlock - 1) / kBlock, exact_exponent(0));
  for (std::size_t block = 0; block < found.size(); ++block) {
    const std::size_t first = block * kBlock;
    const std::size_t length = std::min(kBlock, count - first);
    for (const std::span<const float>& shard : shards) {
      const std::span<const float> values = shard.subspan(first, length);
      const std::uint32_t most = largest_magnitude(values);
      if (most >= 0x7f800000) {
        const auto bad = std::find_if(values.begin(), values.end(), [](float value) {
          return (bits_of(value) & 0x7fffffff) >= 0x7f800000;
        });
        const auto element = std::int64_t(first) + (bad - values.begin());
        found[block] =
            std::max(found[block], kRefused | std::int64_t(rank) << kElementBits | element);
      } else {
        found[block] = std::max<std::int64_t>(found[block], exact_exponent(most));
      }
    }
  }
  return found;
}

// How many shards there are. The sum is a small one of its own.
std::int64_t count_shards(Communicator& communicator, std::size_t own) {
  std::int64_t count = std::int64_t(own);
  communicator.all_reduce(std::span(&count, 1));
  if (count > kMostShards)
    throw ConfigError("{} shards in an exact sum: at most {}", count, kMostShards);
  return count;
}

}  // namespace

std::uint32_t largest_magnitude(std::span<const float> values) {
  std::uint32_t most = 0;
  for (float value : values) most = std::max(most, bits_of(value) & 0x7fffffff);
  return most;
}

int exact_exponent(std::uint32_t most) { return int(most >> 23) - 126; }

// Adding 1.5 * 2^52 to a double below 2^51 leaves the nearest integer, ties to even, in its lowest
// bits.
void add_exact(std::span<const float> values, int exponent, std::span<std::int64_t> sums) {
  constexpr double kMagic = 0x1.8p52;
  constexpr std::int64_t kMagicBits = std::bit_cast<std::int64_t>(kMagic);
  const double per_unit = power_of_two(kBits - exponent);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool denormal = (bits_of(values[i]) & 0x7f800000) == 0;
    const double units = denormal ? 0.0 : double(values[i]) * per_unit;
    sums[i] += std::bit_cast<std::int64_t>(units + kMagic) - kMagicBits;
  }
}

void exact_to_floats(std::span<const std::int64_t> sums, int exponent, double divisor,
                     std::span<float> result) {
  const double unit = power_of_two(exponent - kBits);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double value = double(sums[i]) * unit / divisor;
    result[i] = std::fabs(value) < 0x1p-126 ? 0.0f : float(value);
  }
}

void all_reduce_exact(Communicator& communicator, std::span<const std::span<const float>> shards,
                      std::span<float> result, Reduction reduction) {
  CHECK(reduction != Reduction::max, "a maximum is exact by itself");
  for (const std::span<const float>& shard : shards)
    CHECK(shard.size() == result.size(), "a shard of {} elements, not {}", shard.size(),
          result.size());
  const std::int64_t count = count_shards(communicator, shards.size());
  const double divisor =
      reduction == Reduction::mean ? double(std::max<std::int64_t>(count, 1)) : 1;
  // All pieces are looked at before the first is sent.
  std::vector<std::int64_t> all = exponents(communicator.transport().rank(), shards, result.size());
  communicator.all_reduce(std::span(all), Reduction::max);
  for (std::int64_t code : all)
    if (code >= kRefused) refuse(code);
  std::vector<std::int64_t> sums(std::min(kPiece, result.size()));
  for (std::size_t begin = 0; begin < result.size(); begin += kPiece) {
    const std::size_t length = std::min(kPiece, result.size() - begin);
    const std::span<std::int64_t> piece = std::span(sums).first(length);
    std::fill(piece.begin(), piece.end(), 0);
    const auto for_each_block = [&](const auto& body) {
      for (std::size_t at = 0; at < length; at += kBlock)
        body(begin + at, piece.subspan(at, std::min(kBlock, length - at)),
             int(all[(begin + at) / kBlock]));
    };
    for_each_block([&](std::size_t first, std::span<std::int64_t> block, int exponent) {
      for (const std::span<const float>& shard : shards)
        add_exact(shard.subspan(first, block.size()), exponent, block);
    });
    communicator.all_reduce(piece);
    for_each_block([&](std::size_t first, std::span<std::int64_t> block, int exponent) {
      exact_to_floats(block, exponent, divisor, result.subspan(first, block.size()));
    });
  }
}

}  // namespace convoy
