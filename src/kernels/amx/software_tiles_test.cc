// Whether tiles in software (kernels/software_tiles) do what the CPU's tiles do, where it has any.
#include <gtest/gtest.h>

#include "kernels/cpu.h"
#if !defined(CONVOY_ON_AVX2) && !defined(CONVOY_ON_AVX512)
#include <cstring>
#include <vector>

#include "base/rng.h"
#include "kernels/cpu_amx.h"
#include "kernels/software_tiles/tiles.h"

namespace convoy {
namespace {

TEST(SoftwareTiles, AreThereWhereTheRestOfTheKernelsRuns) {
  EXPECT_EQ(cpu().amx_works, cpu().avx512_bf16);
  if (!cpu().amx_works) return;
  const long before = software_tile_instructions();
  EXPECT_TRUE(amx_product_is_right());
  // A CPU that has tiles of its own makes all of them.
  EXPECT_EQ(software_tile_instructions() - before, cpu().amx_bf16 ? 0 : 7);
}

// Numbers of all magnitudes, so that sums round and tiny ones count as zero: a sum in another order
// shows. Without tiles of the CPU's own this tests the reading of instructions alone.
TEST(SoftwareTiles, GiveTheBitsOfTheCpusTiles) {
  if (!cpu().amx_works) return;
  Rng rng(1, Purpose::test);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::uint32_t> left(256), right(256);
    for (auto* factor : {&left, &right})
      for (std::uint32_t& pair : *factor)
        for (int half = 0; half < 2; ++half)
          pair = pair << 16 | rng.below(2) << 15 |
                 (round % 2 ? 100 + rng.below(50) : 40 + rng.below(50)) << 7 | rng.below(128);
    std::vector<float> of_cpu(256), of_software(256);
    amx_multiply(reinterpret_cast<const std::uint16_t*>(left.data()),
                 reinterpret_cast<const std::uint16_t*>(right.data()), of_cpu.data());
    software_tile_product(of_software.data(), left.data(), right.data());
    EXPECT_EQ(std::memcmp(of_cpu.data(), of_software.data(), 1024), 0) << round;
  }
}

}  // namespace
}  // namespace convoy
#endif
