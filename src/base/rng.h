// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011): a number is a pure function of
// its key and position, so the same (seed, purpose, epoch, sample) gives the same bits on any
// worker, in any order.
#pragma once

#include <array>
#include <cstdint>

namespace convoy {

// What a stream of numbers is for. Streams of different purposes never meet.
enum class Purpose : std::uint32_t {
  shuffle = 1,
  augment = 2,
  initialize = 3,
  dropout = 4,
  synthetic = 5,
  test = 6
};

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

// A stream of numbers for one (seed, purpose, epoch, sample).
class Rng {
 public:
  Rng(std::uint64_t seed, Purpose purpose, std::uint32_t epoch = 0, std::uint64_t sample = 0);

  std::uint32_t next();                      // uniform over 32 bits
  float uniform();                           // [0, 1), 24 bits
  float normal();                            // mean 0, variance 1
  std::uint32_t below(std::uint32_t bound);  // uniform over [0, bound), without bias

 private:
  void refill();

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
  bool has_spare_ = false;
  float spare_ = 0;
};

}  // namespace convoy
