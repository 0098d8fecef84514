// From bytes to what a network reads: normalised f32 planes, with the random changes of training.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "data/loader.h"

namespace convoy {

// Normalises (x / 255 - mean) / deviation per channel; then a random crop of the image padded with
// black (byte 0) and a random mirror image, both keyed by (seed, epoch, sample). Const calls may
// run on several threads at once.
class Augment {
 public:
  Augment(const Dataset& dataset, const AugmentOptions& options, std::uint64_t seed);

  // `image` is CHW bytes, `out` as many floats; they do not overlap.
  void apply(std::span<const std::uint8_t> image, std::uint32_t epoch, std::uint64_t sample,
             std::span<float> out) const;

 private:
  struct Channel {
    float scale, shift;  // out = byte * scale + shift
  };

  Shape shape_;
  AugmentOptions options_;
  std::uint64_t seed_;
  std::vector<Channel> channels_;
};

}  // namespace convoy
