// Made-up images that a network can learn: each class has a smooth pattern of its own, each sample
// adds noise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "data/cut.h"
#include "data/dataset.h"

namespace convoy {

struct SyntheticSpec {
  Shape shape;
  int classes = 10;
  std::size_t train_count = 2048;
  std::size_t test_count = 512;
};

// Reads "synthetic:CxHxW:CLASSES[:COUNT]"; COUNT training samples, a quarter as many (at least one)
// for testing. Throws ConfigError that says which part is wrong.
SyntheticSpec parse_synthetic(std::string_view text);

enum class SyntheticPart : std::uint32_t { train = 0, test = 1 };

// Every pixel is a pure function of (seed, part, sample). Train and test share their patterns.
std::unique_ptr<Dataset> make_synthetic(const SyntheticSpec& spec, SyntheticPart part,
                                        std::uint64_t seed, const Cut& cut = {});

}  // namespace convoy
